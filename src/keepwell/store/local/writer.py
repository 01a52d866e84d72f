"""Writing to the local store: the log first, then every table that follows it, all in one transaction."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Final

from keepwell.model.change import FIRST_STAMP, Change, ChangeKind, Draft, Payload, Stamp
from keepwell.model.errors import Conflict, Internal, NotFound
from keepwell.model.lesson import Action, Author
from keepwell.model.scope import Project, Scope, ScopeRef
from keepwell.model.text import canonical_json, key_fingerprint, keyed_digest, text_hash
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_writer import CategoryWriter
from keepwell.store.local.link import Link, Row
from keepwell.store.local.reader import LocalReader, scope_key
from keepwell.store.port import Delivery, Receipt

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Envelope:
    """What a change gets when it is first written, and keeps wherever it goes."""

    uid: str
    stamp: Stamp
    digest: str
    key_id: str


class LocalWriter(LocalReader, CategoryWriter):
    """`store.port.Writer` over one connection inside a `BEGIN IMMEDIATE` transaction."""

    def __init__(
        self,
        link: Link,
        key: bytes,
        files: CategoryFiles,
        newest_row: Callable[[str], Row | None],
        *,
        device: str,
        now_ms: Callable[[], int],
        new_uid: Callable[[], str],
        transaction: str,
        max_versions: int,
    ) -> None:
        CategoryWriter.__init__(
            self, link, files, newest_row, now_ms=now_ms, max_versions=max_versions, transaction=transaction
        )
        self._key = key
        self._device = device
        self._new_uid = new_uid
        self.taken_back = False

    def append(self, draft: Draft) -> int:  # noqa: D102 - the port's docstring holds
        scope_id = self._scope_id(draft.scope) if draft.scope else None
        body = draft.payload.to_json()
        envelope = _Envelope(
            self._new_uid(), self._next_stamp(), keyed_digest(self._key, body.encode()), key_fingerprint(self._key)
        )
        seq = self._log(draft, scope_id, envelope, body)
        return self._follow(draft, scope_id, seq, envelope.stamp)

    def take(self, change: Change, scope: Scope | None) -> bool:  # noqa: D102
        return self._take(change, self._scope_like(scope) if scope else None)

    def _take(self, change: Change, scope_id: int | None) -> bool:
        if self._link.value("change_known", uid=change.uid):
            return False
        erasure = self._link.row("last_erasure", subject=change.subject)
        if erasure and change.stamp <= Stamp(**erasure):
            # what was erased here stays erased, wherever it comes from
            change = replace(change, payload=None)
        body = change.payload.to_json() if change.payload else None
        envelope = _Envelope(change.uid, change.stamp, change.digest, change.key_id)
        seq = self._log(change, scope_id, envelope, body)
        try:
            self._follow(change, scope_id, seq, change.stamp)
        except (Conflict, NotFound):
            # what it is about changed meanwhile, or is not known here: the log has it, no row follows
            _log.debug("change %s has no effect here", change.uid)
        return True

    def record(self, draft: Draft, *, uid: str, ms: int) -> bool:  # noqa: D102
        scope_id = self._scope_id(draft.scope) if draft.scope else 0
        body = draft.payload.to_json()
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
            digest=keyed_digest(self._key, body.encode()),
            key_id=key_fingerprint(self._key),
            payload=draft.payload,
        )
        return self._take(change, scope_id or None)

    def _follow(self, change: Draft | Change, scope_id: int | None, seq: int, stamp: Stamp) -> int:
        """Let the rows of what a change is about follow it."""
        match change.kind:
            case ChangeKind.LESSON_ADDED:
                return self._add(change, scope_id, seq, stamp.ms)
            case ChangeKind.LESSON_ARCHIVED:
                return self._archive(change.subject, Action.ARCHIVED, change, seq, stamp.ms)
            case ChangeKind.LESSON_RATED:
                return self._rate(change, seq, stamp.ms)
            case ChangeKind.LESSON_FORGOTTEN:
                return self._forget(change.subject, seq, stamp)
            case _:
                return self.write_category(change, seq, stamp)

    def _scope_like(self, scope: Scope) -> int:
        """The scope of that uid, else the one of the same project, else a new one."""
        known: int | None = self._link.value(
            "scope_like", uid=scope.uid, kind=scope.kind.value, path=scope.project_path
        )
        if known is not None:
            return known
        made: int = self._link.value(
            "add_scope",
            uid=scope.uid,
            kind=scope.kind.value,
            name=scope.name,
            path=scope.project_path,
            inode=scope.folder_inode,
            now=scope.created_at,
        )
        return made

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

    def _log(self, change: Draft | Change, scope_id: int | None, envelope: "_Envelope", body: str | None) -> int:
        seq: int = self._link.value(
            "add_change",
            uid=envelope.uid,
            ms=envelope.stamp.ms,
            counter=envelope.stamp.counter,
            device=envelope.stamp.device,
            kind=change.kind.value,
            subject=change.subject,
            scope_id=scope_id,
            actor=change.author.actor,
            client=change.author.client,
            session=change.author.session,
            model=change.author.model,
            supersedes=change.supersedes,
            verdict=change.verdict.value if change.verdict else None,
            digest=envelope.digest,
            key_id=envelope.key_id,
        )
        if body is not None:
            self._link.rows("add_payload", seq=seq, body=body)
        return seq

    def _add(self, change: Draft | Change, scope_id: int | None, seq: int, at: int) -> int:
        if self._link.value("lesson_id", uid=change.subject) is not None:
            raise Conflict("a lesson of this uid is here already.")
        text = _text(change)
        hashed = text_hash(text) if text else f"erased:{change.subject}"
        old_id = self._superseded(change, at)
        twin = self._link.value("active_lesson", scope_id=scope_id, text_hash=hashed)
        lesson_id: int = self._link.value(
            "add_lesson",
            uid=change.subject,
            scope_id=scope_id,
            text=text,
            text_hash=hashed,
            supersedes=change.supersedes,
            # a text that came from elsewhere and is remembered already, or was erased, is kept out of search
            status="active" if text and twin is None else "archived",
            archived_at=None if text and twin is None else at,
            created_at=at,
            seq=seq,
            **_author(change.author),
        )
        self._add_evidence(change, lesson_id, at)
        self._event(lesson_id, Action.ADDED, change, seq, at, {} if old_id is None else {"supersedes": old_id})
        if old_id is not None:
            self._event(old_id, Action.SUPERSEDED, change, seq, at, {"superseded_by": lesson_id})
        return lesson_id

    def _superseded(self, change: Draft | Change, at: int) -> int | None:
        """Archive what a lesson replaces, before its own row is made, so that the same text may replace itself."""
        if change.supersedes is None:
            return None
        if isinstance(change, Draft):
            return self._archive_row(change.supersedes, at)
        # elsewhere somebody else may have archived it before
        archived: int | None = self._link.value("archive_lesson", uid=change.supersedes, at=at)
        return archived

    def _add_evidence(self, draft: Draft | Change, lesson_id: int, at: int) -> None:
        payload = draft.payload or Payload()
        for item in payload.evidence:
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
            memory_text=payload.text or "",
            evidence_text="\n".join(item.description for item in payload.evidence),
        )

    def _archive(self, uid: str, action: Action, draft: Draft | Change, seq: int, at: int) -> int:
        lesson_id = self._archive_row(uid, at)
        self._event(lesson_id, action, draft, seq, at, {})
        return lesson_id

    def _archive_row(self, uid: str, at: int) -> int:
        lesson_id: int | None = self._link.value("archive_lesson", uid=uid, at=at)
        if lesson_id is None:
            raise Conflict("the lesson is not active any more.", hint="Read it again with memory_get.")
        return lesson_id

    def _event(
        self, lesson_id: int, action: Action, draft: Draft | Change, seq: int, at: int, details: dict[str, int]
    ) -> None:
        told = draft.payload.reason if draft.payload else None
        reason = {"reason": told} if told else {}
        self._link.rows(
            "add_event",
            memory_id=lesson_id,
            action=action.value,
            details=canonical_json(reason | details),
            created_at=at,
            seq=seq,
            **_author(draft.author),
        )

    def _rate(self, draft: Draft | Change, seq: int, at: int) -> int:
        lesson_id: int | None = self._link.value("lesson_id", uid=draft.subject)
        if lesson_id is None or draft.verdict is None:
            raise NotFound("there is no such lesson to report on.")
        self._link.rows(
            "add_feedback",
            memory_id=lesson_id,
            verdict=draft.verdict.value,
            reason=draft.payload.reason if draft.payload else None,
            created_at=at,
            seq=seq,
            **_author(draft.author),
        )
        return lesson_id

    def _forget(self, uid: str, seq: int, stamp: Stamp) -> int:
        """Erase a lesson's texts for good; its envelopes and its row stay."""
        self._link.rows("add_erasure", subject=uid, seq=seq, at=stamp.ms)
        self._link.rows("erase_payloads", subject=uid, **asdict(stamp))
        lesson_id: int | None = self._link.value("erase_lesson", subject=uid, at=stamp.ms)
        if lesson_id is None:
            raise NotFound("there is no such lesson to forget.")
        for name in ("erase_evidence", "erase_reasons_of_events", "erase_reasons_of_feedback", "erase_vectors"):
            self._link.rows(name, id=lesson_id)
        self._link.rows("unindex_lesson", id=lesson_id)
        return lesson_id

    def record_retrievals(self, lesson_ids: tuple[int, ...], *, method: str) -> int:  # noqa: D102
        request_id: int = self._link.value("next_request_id")
        now = self._now_ms()
        for lesson_id in lesson_ids:
            self._link.rows("add_retrieval", memory_id=lesson_id, request_id=request_id, method=method, now=now)
        return request_id

    def take_back(self) -> None:  # noqa: D102
        self.taken_back = True

    def take_deliveries(self, deliveries: Iterable[Delivery]) -> None:  # noqa: D102
        self._link.each("put_retrievals", [asdict(delivery) for delivery in deliveries])

    def take_receipts(self, rows: Iterable[Row]) -> None:
        """Copy receipts from another database of ours."""
        self._link.each("put_receipts", rows)

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


def _text(change: Draft | Change) -> str:
    """A lesson's text; empty for one that was erased."""
    text = change.payload.text if change.payload else ""
    if text is None:
        raise Internal("a lesson without text cannot be added.")
    return text


def _author(author: Author) -> Row:
    return {"actor": author.actor, "client": author.client, "session": author.session, "model": author.model}
