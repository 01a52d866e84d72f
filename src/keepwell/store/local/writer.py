"""Writing to the local store: the log first, then every table that follows it, all in one transaction."""

from collections.abc import Callable

from keepwell.model.change import FIRST_STAMP, ChangeKind, Draft, Stamp
from keepwell.model.errors import Conflict, Internal, NotFound
from keepwell.model.lesson import Action, Author
from keepwell.model.scope import Project, Scope, ScopeRef
from keepwell.model.text import canonical_json, key_fingerprint, keyed_digest, text_hash
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_writer import CategoryWriter
from keepwell.store.local.link import Link, Row
from keepwell.store.local.reader import LocalReader, scope_key
from keepwell.store.port import Receipt


class LocalWriter(LocalReader, CategoryWriter):
    """`store.port.Writer` over one connection inside a `BEGIN IMMEDIATE` transaction."""

    def __init__(
        self,
        link: Link,
        key: bytes,
        files: CategoryFiles,
        newest_hash: Callable[[str], str | None],
        *,
        device: str,
        now_ms: Callable[[], int],
        new_uid: Callable[[], str],
        transaction: str,
        max_versions: int,
    ) -> None:
        CategoryWriter.__init__(
            self, link, files, newest_hash, now_ms=now_ms, max_versions=max_versions, transaction=transaction
        )
        self._key = key
        self._device = device
        self._new_uid = new_uid

    def append(self, draft: Draft) -> int:  # noqa: D102 - the port's docstring holds
        scope_id = self._scope_id(draft.scope) if draft.scope else None
        stamp = self._next_stamp()
        seq = self._log(draft, scope_id, stamp)
        match draft.kind:
            case ChangeKind.LESSON_ADDED:
                return self._add(draft, scope_id, seq, stamp.ms)
            case ChangeKind.LESSON_ARCHIVED:
                return self._archive(draft.subject, Action.ARCHIVED, draft, seq, stamp.ms)
            case ChangeKind.LESSON_RATED:
                return self._rate(draft, seq, stamp.ms)
            case _:
                return self.write_category(draft, seq, stamp)

    def _scope_id(self, ref: ScopeRef) -> int:
        if scope := self.scope(ref):
            return scope.id
        project = ref.project
        made: int = self._link.value(
            "add_scope",
            uid=self._new_uid(),
            kind=ref.kind.value,
            name=project.name if project else "global",
            path=project.path if project else None,
            inode=project.inode if project else None,
            now=self._now_ms(),
        )
        return made

    def _next_stamp(self) -> Stamp:
        row = self._link.row("last_stamp")
        last = Stamp(**row) if row else FIRST_STAMP
        return last.next(now_ms=self._now_ms(), device=self._device)

    def _log(self, draft: Draft, scope_id: int | None, stamp: Stamp) -> int:
        body = draft.payload.to_json()
        seq: int = self._link.value(
            "add_change",
            uid=self._new_uid(),
            ms=stamp.ms,
            counter=stamp.counter,
            device=stamp.device,
            kind=draft.kind.value,
            subject=draft.subject,
            scope_id=scope_id,
            actor=draft.author.actor,
            client=draft.author.client,
            session=draft.author.session,
            model=draft.author.model,
            supersedes=draft.supersedes,
            verdict=draft.verdict.value if draft.verdict else None,
            digest=keyed_digest(self._key, body.encode()),
            key_id=key_fingerprint(self._key),
        )
        self._link.rows("add_payload", seq=seq, body=body)
        return seq

    def _add(self, draft: Draft, scope_id: int | None, seq: int, at: int) -> int:
        text = draft.payload.text
        if text is None:
            raise Internal("a lesson without text cannot be added.")
        if draft.supersedes:
            # before the new row, so that the same text may replace itself
            old_id = self._archive_row(draft.supersedes, at)
        lesson_id: int = self._link.value(
            "add_lesson",
            uid=draft.subject,
            scope_id=scope_id,
            text=text,
            text_hash=text_hash(text),
            supersedes=draft.supersedes,
            created_at=at,
            seq=seq,
            **_author(draft.author),
        )
        self._add_evidence(draft, lesson_id, at)
        added = {"supersedes": old_id} if draft.supersedes else {}
        self._event(lesson_id, Action.ADDED, draft, seq, at, added)
        if draft.supersedes:
            self._event(old_id, Action.SUPERSEDED, draft, seq, at, {"superseded_by": lesson_id})
        return lesson_id

    def _add_evidence(self, draft: Draft, lesson_id: int, at: int) -> None:
        for item in draft.payload.evidence:
            self._link.rows(
                "add_evidence",
                memory_id=lesson_id,
                description=item.description,
                source_uri=item.source_uri,
                created_at=at,
            )
        self._link.rows(
            "index_lesson",
            memory_id=lesson_id,
            memory_text=draft.payload.text,
            evidence_text="\n".join(item.description for item in draft.payload.evidence),
        )

    def _archive(self, uid: str, action: Action, draft: Draft, seq: int, at: int) -> int:
        lesson_id = self._archive_row(uid, at)
        self._event(lesson_id, action, draft, seq, at, {})
        return lesson_id

    def _archive_row(self, uid: str, at: int) -> int:
        lesson_id: int | None = self._link.value("archive_lesson", uid=uid, at=at)
        if lesson_id is None:
            raise Conflict("the lesson is not active any more.", hint="Read it again with memory_get.")
        return lesson_id

    def _event(self, lesson_id: int, action: Action, draft: Draft, seq: int, at: int, details: dict[str, int]) -> None:
        reason = {"reason": draft.payload.reason} if draft.payload.reason else {}
        self._link.rows(
            "add_event",
            memory_id=lesson_id,
            action=action.value,
            details=canonical_json(reason | details),
            created_at=at,
            seq=seq,
            **_author(draft.author),
        )

    def _rate(self, draft: Draft, seq: int, at: int) -> int:
        lesson_id: int | None = self._link.value("lesson_id", uid=draft.subject)
        if lesson_id is None or draft.verdict is None:
            raise NotFound("there is no such lesson to report on.")
        self._link.rows(
            "add_feedback",
            memory_id=lesson_id,
            verdict=draft.verdict.value,
            reason=draft.payload.reason,
            created_at=at,
            seq=seq,
            **_author(draft.author),
        )
        return lesson_id

    def record_retrievals(self, lesson_ids: tuple[int, ...], *, method: str) -> int:  # noqa: D102
        request_id: int = self._link.value("next_request_id")
        now = self._now_ms()
        for lesson_id in lesson_ids:
            self._link.rows("add_retrieval", memory_id=lesson_id, request_id=request_id, method=method, now=now)
        return request_id

    def remember(self, scope: ScopeRef, operation_id: str, receipt: Receipt) -> None:  # noqa: D102
        self._link.rows(
            "add_receipt",
            scope_key=scope_key(scope),
            operation_id=operation_id,
            operation=receipt.operation,
            fingerprint=receipt.fingerprint,
            result=receipt.result,
            now=self._now_ms(),
        )

    def relink(self, scope: Scope, project: Project) -> None:  # noqa: D102
        if self.scope(ScopeRef(project)):
            raise Conflict(
                "this project has lessons under its present path already, so the old ones cannot simply follow.",
                hint="Read them with --workspace set to the old path, and add what still holds here.",
            )
        self._link.rows("relink_scope", id=scope.id, path=project.path, name=project.name, inode=project.inode)


def _author(author: Author) -> Row:
    return {"actor": author.actor, "client": author.client, "session": author.session, "model": author.model}
