"""The reference engine: everything in memory, derived by folding the log. For tests of what engines must agree on.

Nothing is durable and one process alone can use it. It keeps only the log, the deliveries and the receipts; every
answer is computed from them, so that it says in the plainest way what an engine has to answer.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from keepwell.model.category import Compacted
from keepwell.model.census import Counts
from keepwell.model.change import FIRST_STAMP, FORGETTING, Change, ChangeKind, Draft, LessonState, Stamp, fold
from keepwell.model.errors import Busy, Conflict, NotFound, Unsupported
from keepwell.model.lesson import Event, Feedback, Lesson, Statistics, Status, Verdict
from keepwell.model.query import Candidate, LessonQuery
from keepwell.model.scope import Project, Scope, ScopeKind, ScopeRef, ScopeSummary
from keepwell.model.text import key_fingerprint, keyed_digest, text_hash
from keepwell.store.memory_categories import TEXT_WEIGHT, MemoryCategories, parts
from keepwell.store.port import Capabilities, Delivery, Finding, Pruned, Receipt, Snapshot, StoreStatus
from keepwell.store.world import World


@dataclass(frozen=True, slots=True)
class _Delivery:
    request_id: int
    lesson_id: int
    at: int


@dataclass(slots=True)
class _Contents:
    scopes: list[Scope] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    deliveries: list[_Delivery] = field(default_factory=list)
    receipts: dict[tuple[str, str], Receipt] = field(default_factory=dict)


class MemoryReader(MemoryCategories):
    """`store.port.Reader` over the contents of one instant."""

    def __init__(self, contents: _Contents, key: bytes) -> None:
        super().__init__(contents.changes)
        self._contents = contents
        self._key = key

    @property
    def _lessons(self) -> dict[str, LessonState]:
        return fold(self._contents.changes)

    def _ids(self) -> dict[str, int]:
        added = (change.subject for change in self._contents.changes if change.kind is ChangeKind.LESSON_ADDED)
        return {uid: number for number, uid in enumerate(added, start=1)}

    def _uid(self, lesson_id: int) -> str | None:
        return next((uid for uid, number in self._ids().items() if number == lesson_id), None)

    def scope(self, ref: ScopeRef) -> Scope | None:  # noqa: D102 - the port's docstring holds
        path = ref.project.path if ref.project else None
        found = (s for s in self._contents.scopes if s.kind is ref.kind and s.project_path == path)
        return next(found, None)

    def moved_scope(self, project: Project) -> Scope | None:  # noqa: D102
        moved = [
            scope
            for scope in self._contents.scopes
            if scope.kind is ScopeKind.PROJECT
            and scope.folder_inode is not None
            and scope.folder_inode == project.inode
            and scope.project_path != project.path
        ]
        return moved[-1] if moved else None

    def scopes(self) -> tuple[ScopeSummary, ...]:  # noqa: D102
        ordered = sorted(self._contents.scopes, key=lambda scope: (scope.kind, scope.project_path or ""))
        return tuple(self._summary(scope) for scope in ordered)

    def _summary(self, scope: Scope) -> ScopeSummary:
        states = [lesson.status for lesson in self._lessons.values() if lesson.scope_uid == scope.uid]
        return ScopeSummary(scope, states.count(Status.ACTIVE), states.count(Status.ARCHIVED))

    def lesson(self, lesson_id: int) -> Lesson | None:  # noqa: D102
        uid = self._uid(lesson_id)
        return self._as_lesson(uid, self._lessons[uid]) if uid else None

    def _as_lesson(self, uid: str, state: LessonState) -> Lesson:
        ids = self._ids()
        return Lesson(
            id=ids[uid],
            uid=uid,
            scope=next(scope for scope in self._contents.scopes if scope.uid == state.scope_uid),
            text=state.text or "",
            evidence=state.evidence,
            status=state.status,
            supersedes_id=ids[state.supersedes] if state.supersedes else None,
            superseded_by=tuple(ids[other] for other, lesson in self._lessons.items() if lesson.supersedes == uid),
            author=state.author,
            created_at=state.created_at,
            archived_at=state.archived_at,
        )

    def active_lesson(self, scope: Scope, text_hash: str) -> Lesson | None:  # noqa: D102
        for uid, state in self._active((scope.uid,)):
            if _hash(state) == text_hash:
                return self._as_lesson(uid, state)
        return None

    def _active(self, scope_uids: tuple[str, ...]) -> Iterator[tuple[str, LessonState]]:
        for uid, state in self._lessons.items():
            if state.status is Status.ACTIVE and state.scope_uid in scope_uids:
                yield uid, state

    def statistics(self, lesson_id: int) -> Statistics:  # noqa: D102
        delivered = [delivery.at for delivery in self._contents.deliveries if delivery.lesson_id == lesson_id]
        uid = self._uid(lesson_id)
        reports = self._lessons[uid].feedback if uid else []
        verdicts = [report.verdict for report in reports]
        return Statistics(
            retrieval_count=len(delivered),
            useful_count=verdicts.count(Verdict.USEFUL),
            not_useful_count=verdicts.count(Verdict.NOT_USEFUL),
            incorrect_count=verdicts.count(Verdict.INCORRECT),
            outdated_count=verdicts.count(Verdict.OUTDATED),
            last_retrieved_at=max(delivered, default=None),
            last_feedback_at=reports[-1].stamp.ms if reports else None,
            last_verdict=verdicts[-1] if verdicts else None,
        )

    def events(self, lesson_id: int, *, limit: int) -> tuple[Event, ...]:  # noqa: D102
        uid = self._uid(lesson_id)
        happened = self._lessons[uid].events if uid else []
        ids = self._ids()
        events = [
            Event(
                id=change.seq,
                action=action,
                author=change.author,
                reason=change.payload.reason if change.payload else None,
                successor_id=ids[successor] if successor else None,
                created_at=change.stamp.ms,
            )
            for action, successor, change in reversed(happened)
        ]
        return tuple(events[:limit])

    def feedback(self, lesson_id: int, *, limit: int) -> tuple[Feedback, ...]:  # noqa: D102
        uid = self._uid(lesson_id)
        reports = self._lessons[uid].feedback if uid else []
        return tuple(map(_as_feedback, reversed(reports[-limit:] if limit else [])))

    def search(self, query: LessonQuery) -> tuple[Candidate, ...]:  # noqa: D102
        uids = tuple(scope.uid for scope in self._contents.scopes if scope.id in query.scope_ids)
        ids = self._ids()
        scored = [
            Candidate(ids[uid], _score(state, query.words))
            for uid, state in self._active(uids)
            if query.period.holds(state.created_at) and query.actor in (None, state.author.actor, state.author.client)
        ]
        ranked = sorted((hit for hit in scored if hit.score), key=lambda hit: (-hit.score, -hit.lesson_id))
        return tuple(ranked[: query.limit])

    def receipt(self, scope: ScopeRef, operation_id: str) -> Receipt | None:  # noqa: D102
        return self._contents.receipts.get((_scope_key(scope), operation_id))

    def changes(self, *, after: int, limit: int) -> tuple[Change, ...]:  # noqa: D102
        return tuple(self._contents.changes[after : after + limit])

    def erased(self) -> tuple[tuple[ChangeKind, str], ...]:  # noqa: D102
        return tuple((change.kind, change.subject) for change in self._contents.changes if change.kind in FORGETTING)

    def counts(self) -> Counts:  # noqa: D102
        lessons = self._lessons.values()
        return Counts(
            scopes=len(self._contents.scopes),
            lessons=len(lessons),
            active_lessons=sum(lesson.status is Status.ACTIVE for lesson in lessons),
            changes=len(self._contents.changes),
            retrievals=len(self._contents.deliveries),
            feedback=sum(len(lesson.feedback) for lesson in lessons),
            categories=sum(state.deleted_at is None for state in self._states.values()),
            category_versions=sum(len(state.versions) for state in self._states.values()),
            log_entries=sum(len(state.entries) for state in self._states.values()),
        )

    def recent_lessons(self, scope_ids: tuple[int, ...], *, limit: int) -> tuple[int, ...]:  # noqa: D102
        uids = tuple(scope.uid for scope in self._contents.scopes if scope.id in scope_ids)
        ids = self._ids()
        return tuple(sorted((ids[uid] for uid, _ in self._active(uids)), reverse=True)[:limit])

    def deliveries(self) -> tuple[Delivery, ...]:  # noqa: D102
        uids = {number: uid for uid, number in self._ids().items()}
        return tuple(Delivery(uids[d.lesson_id], d.request_id, "keyword", d.at) for d in self._contents.deliveries)

    def is_authentic(self, change: Change) -> bool | None:  # noqa: D102
        if change.payload is None or change.key_id != key_fingerprint(self._key):
            return None
        return keyed_digest(self._key, change.payload.to_json().encode()) == change.digest

    def fingerprint(self, data: str) -> str:  # noqa: D102
        return f"{key_fingerprint(self._key)}:{keyed_digest(self._key, data.encode())}"


class MemoryWriter(MemoryReader):
    """`store.port.Writer` over contents that become the store's own when the block ends well."""

    def __init__(
        self, contents: _Contents, key: bytes, *, device: str, now_ms: Callable[[], int], new_uid: Callable[[], str]
    ) -> None:
        super().__init__(contents, key)
        self._device = device
        self._now_ms = now_ms
        self._new_uid = new_uid
        self.taken_back = False

    def append(self, draft: Draft) -> int:  # noqa: D102 - the port's docstring holds
        self._require_fit(draft)
        scope = (self.scope(draft.scope) or self._new_scope(draft.scope)) if draft.scope else None
        last = max((change.stamp for change in self._contents.changes), default=FIRST_STAMP)
        self._contents.changes.append(
            Change(
                seq=len(self._contents.changes) + 1,
                uid=self._new_uid(),
                stamp=last.next(now_ms=self._now_ms(), device=self._device),
                kind=draft.kind,
                subject=draft.subject,
                scope_uid=scope.uid if scope else None,
                author=draft.author,
                supersedes=draft.supersedes,
                verdict=draft.verdict,
                digest=keyed_digest(self._key, draft.payload.to_json().encode()),
                key_id=key_fingerprint(self._key),
                payload=draft.payload,
            )
        )
        self._erase(draft.kind, draft.subject)
        if scope:
            return self._ids()[draft.subject]
        state = self._states[draft.subject]
        return state.next_entry_id - 1 if draft.kind is ChangeKind.LOG_APPENDED else state.heading.version

    def _erase(self, kind: ChangeKind, subject: str) -> None:
        """After a forgetting, the payloads of its subject are gone."""
        if kind not in FORGETTING:
            return
        mine = [change for change in self._contents.changes if change.subject == subject]
        last = max(change.stamp for change in mine if change.kind is kind)
        self._contents.changes[:] = [
            replace(change, payload=None)
            if change.subject == subject and change.stamp <= last and change.kind not in FORGETTING
            else change
            for change in self._contents.changes
        ]

    def take(self, change: Change, scope: Scope | None) -> bool:  # noqa: D102
        if any(known.uid == change.uid for known in self._contents.changes):
            return False
        mine = self._scope_like(scope) if scope else None
        seq = len(self._contents.changes) + 1
        erasures = [c for c in self._contents.changes if c.kind in FORGETTING and c.subject == change.subject]
        is_erased = any(change.stamp <= erasure.stamp for erasure in erasures)
        payload = None if is_erased else change.payload
        taken = replace(change, seq=seq, scope_uid=mine.uid if mine else None, payload=payload)
        self._contents.changes.append(taken)
        self._erase(change.kind, change.subject)
        return True

    def record(self, draft: Draft, *, uid: str, ms: int) -> bool:  # noqa: D102
        scope = (self.scope(draft.scope) or self._new_scope(draft.scope)) if draft.scope else None
        change = Change(
            seq=0,
            uid=uid,
            stamp=Stamp(ms, 0, self._device),
            kind=draft.kind,
            subject=draft.subject,
            scope_uid=None,
            author=draft.author,
            supersedes=draft.supersedes,
            verdict=draft.verdict,
            digest=keyed_digest(self._key, draft.payload.to_json().encode()),
            key_id=key_fingerprint(self._key),
            payload=draft.payload,
        )
        return self.take(change, scope)

    def take_back(self) -> None:  # noqa: D102
        self.taken_back = True

    def take_deliveries(self, deliveries: Iterable[Delivery]) -> None:  # noqa: D102
        ids = self._ids()
        known = set(self._contents.deliveries)
        taken = [_Delivery(d.request_id, ids[d.lesson_uid], d.at) for d in deliveries if d.lesson_uid in ids]
        self._contents.deliveries += [delivery for delivery in taken if delivery not in known]

    def _scope_like(self, scope: Scope) -> Scope:
        same = [other for other in self._contents.scopes if other.uid == scope.uid]
        alike = [
            other
            for other in self._contents.scopes
            if (other.kind, other.project_path) == (scope.kind, scope.project_path)
        ]
        if same or alike:
            return (same or alike)[0]
        added = replace(scope, id=len(self._contents.scopes) + 1)
        self._contents.scopes.append(added)
        return added

    def _require_fit(self, draft: Draft) -> None:
        lessons = self._lessons
        to_archive = draft.subject if draft.kind is ChangeKind.LESSON_ARCHIVED else draft.supersedes
        if to_archive and (to_archive not in lessons or lessons[to_archive].status is Status.ARCHIVED):
            raise Conflict("the lesson is not active any more.", hint="Read it again with memory_get.")
        if draft.kind is ChangeKind.LESSON_RATED and draft.subject not in lessons:
            raise NotFound("there is no such lesson to report on.")
        if draft.scope is None:
            self._require_category(draft)

    def _require_category(self, draft: Draft) -> None:
        state = self._state(draft.subject)
        if state and state.name != draft.subject:
            raise Conflict(f"a category {state.name!a} exists, whose name differs in case or form only.")
        needs_one = draft.kind in (ChangeKind.CATEGORY_DELETED, ChangeKind.LOG_APPENDED)
        if needs_one and (state is None or state.deleted_at is not None):
            raise NotFound(f"there is no category {draft.subject!a}.")

    def _new_scope(self, ref: ScopeRef) -> Scope:
        project = ref.project
        scope = Scope(
            id=len(self._contents.scopes) + 1,
            uid=self._new_uid(),
            kind=ref.kind,
            name=project.name if project else "global",
            project_path=project.path if project else None,
            folder_inode=project.inode if project else None,
            created_at=self._now_ms(),
        )
        self._contents.scopes.append(scope)
        return scope

    def compact(self, name: str, *, keep_versions: int) -> Compacted:
        """Nothing is removed: the log is all there is."""
        return self.compactable(name, keep_versions=keep_versions)

    def record_retrievals(self, lesson_ids: tuple[int, ...], *, method: str) -> int:  # noqa: ARG002, D102
        request_id = max((delivery.request_id for delivery in self._contents.deliveries), default=0) + 1
        self._contents.deliveries += [_Delivery(request_id, number, self._now_ms()) for number in lesson_ids]
        return request_id

    def remember(self, scope: ScopeRef, operation_id: str, receipt: Receipt) -> None:  # noqa: D102
        self._contents.receipts[_scope_key(scope), operation_id] = receipt

    def relink(self, scope: Scope, project: Project) -> None:  # noqa: D102
        if self.scope(ScopeRef(project)):
            raise Conflict("this project has lessons under its present path already.")
        moved = replace(scope, project_path=project.path, name=project.name, folder_inode=project.inode)
        self._contents.scopes[self._contents.scopes.index(scope)] = moved


class MemoryStore:
    """A store that ends with the process."""

    capabilities: Final = Capabilities(name="memory", durable=False, multi_process=False, backup=False)

    def __init__(self, *, device: str, world: World, new_uid: Callable[[], str]) -> None:
        self._device: Final = device
        self._world: Final = world
        self._new_uid: Final = new_uid
        self._key: Final = world.random_bytes(32)
        self._turn: Final = threading.Lock()
        self._contents = _Contents()
        self._stopping = False

    @contextmanager
    def reading(self) -> Iterator[MemoryReader]:  # noqa: D102 - the port's docstring holds
        yield MemoryReader(self._contents, self._key)

    @contextmanager
    def writing(self, *, patience_ms: int | None = None) -> Iterator[MemoryWriter]:  # noqa: D102
        if self._stopping or not self._turn.acquire(timeout=(patience_ms or 10_000) / 1000):
            raise Busy("the store is busy; retry later.")
        try:
            # writers change a copy, so that readers keep their instant and a failure leaves nothing behind
            contents = copy.deepcopy(self._contents)
            writer = MemoryWriter(
                contents, self._key, device=self._device, now_ms=self._world.now_ms, new_uid=self._new_uid
            )
            yield writer
            if not writer.taken_back:
                self._contents = contents
        finally:
            self._turn.release()

    def status(self) -> StoreStatus:  # noqa: D102
        with self.reading() as reader:
            return StoreStatus(
                engine=self.capabilities.name,
                database=None,
                writable=True,
                schema_version=1,
                journal_mode=None,
                synchronous=None,
                file_system=None,
                database_bytes=None,
                wal_bytes=None,
                categories_dir=None,
                backups_dir=None,
                free_bytes=None,
                counts=reader.counts(),
            )

    def check(self) -> tuple[str, ...]:  # noqa: D102
        return ()

    def settle(self, *, patience_ms: int | None = None) -> None:
        """There are no files."""

    def prune_backups(self, *, older_than_days: int, dry_run: bool) -> Pruned:  # noqa: ARG002, D102
        return Pruned(0, 0)

    def findings(self) -> tuple[Finding, ...]:  # noqa: D102
        return ()

    def mend(self) -> tuple[str, ...]:  # noqa: D102
        return ()

    def backup(self, target: Path) -> Counts:  # noqa: D102
        raise Unsupported("a store in memory has no file to back up.", target=target)

    def snapshot(self, folder: Path, *, with_backups: bool, keep: int | None, facts: dict[str, Any]) -> Snapshot:  # noqa: ARG002, D102
        raise Unsupported("a store in memory has no files to keep.", folder=folder)

    def scrub(self) -> bool:  # noqa: D102
        return True

    def interrupt(self) -> None:  # noqa: D102
        self._stopping = True

    def close(self) -> None:
        """Nothing is held."""


def _scope_key(scope: ScopeRef) -> str:
    return scope.project.path if scope.project else ""


def _hash(state: LessonState) -> str:
    return text_hash(state.text or "")


def _as_feedback(change: Change) -> Feedback:
    reason = change.payload.reason if change.payload else None
    return Feedback(change.seq, change.verdict or Verdict.USEFUL, reason, change.author, change.stamp.ms)


def _score(state: LessonState, words: tuple[str, ...]) -> float:
    asked = {part for word in words for part in parts(word)}
    text = asked & parts(state.text or "")
    evidence = asked & {part for item in state.evidence for part in parts(item.description)}
    return TEXT_WEIGHT * len(text) + len(evidence)
