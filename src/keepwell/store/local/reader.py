"""Reading one instant of the local store."""

from collections.abc import Callable

from keepwell.model.census import Counts
from keepwell.model.change import Change, ChangeKind
from keepwell.model.lesson import Event, Evidence, Feedback, Lesson, Statistics, Status, Verdict
from keepwell.model.query import Candidate, LessonQuery
from keepwell.model.scope import Project, Scope, ScopeRef, ScopeSummary
from keepwell.model.text import key_fingerprint, keyed_digest
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_index import CategoryIndex
from keepwell.store.local.category_reader import expression
from keepwell.store.local.link import Link, Row
from keepwell.store.local.rows import to_author, to_change, to_event, to_feedback, to_scope
from keepwell.store.port import Delivery, Receipt


class LocalReader(CategoryIndex):
    """`store.port.Reader` over one connection inside a transaction."""

    def __init__(self, link: Link, key: bytes, files: CategoryFiles, newest_row: Callable[[str], Row | None]) -> None:
        super().__init__(link, files, newest_row)
        self._key = key

    def scope(self, ref: ScopeRef) -> Scope | None:  # noqa: D102 - the port's docstring holds
        if ref.project is None:
            row = self._link.row("scope_global")
        else:
            row = self._link.row("scope_of_project", path=ref.project.path)
        return to_scope(row) if row else None

    def moved_scope(self, project: Project) -> Scope | None:  # noqa: D102
        row = self._link.row("scope_moved", inode=project.inode, path=project.path)
        return to_scope(row) if row else None

    def scopes(self) -> tuple[ScopeSummary, ...]:  # noqa: D102
        rows = self._link.rows("scope_summaries")
        return tuple(ScopeSummary(to_scope(row), row["active"], row["archived"]) for row in rows)

    def lesson(self, lesson_id: int) -> Lesson | None:  # noqa: D102
        row = self._link.row("lesson", id=lesson_id)
        return self._lesson(row) if row else None

    def _lesson(self, row: Row) -> Lesson:
        evidence = self._link.rows("evidence", id=row["id"])
        return Lesson(
            id=row["id"],
            uid=row["uid"],
            scope=to_scope(row, prefix="scope_"),
            text=row["text"],
            evidence=tuple(Evidence(item["description"], item["source_uri"]) for item in evidence),
            status=Status(row["status"]),
            supersedes_id=row["supersedes_id"],
            superseded_by=tuple(item["id"] for item in self._link.rows("successors", id=row["id"])),
            author=to_author(row),
            created_at=row["created_at"],
            archived_at=row["archived_at"],
        )

    def active_lesson(self, scope: Scope, text_hash: str) -> Lesson | None:  # noqa: D102
        lesson_id = self._link.value("active_lesson", scope_id=scope.id, text_hash=text_hash)
        return self.lesson(lesson_id) if lesson_id is not None else None

    def statistics(self, lesson_id: int) -> Statistics:  # noqa: D102
        retrievals = self._link.row("retrieval_statistics", id=lesson_id) or {}
        feedback = self._link.row("feedback_statistics", id=lesson_id) or {}
        verdict = feedback.pop("last_verdict")
        return Statistics(**retrievals, **feedback, last_verdict=Verdict(verdict) if verdict else None)

    def events(self, lesson_id: int, *, limit: int) -> tuple[Event, ...]:  # noqa: D102
        return tuple(map(to_event, self._link.rows("events", id=lesson_id, limit=limit)))

    def feedback(self, lesson_id: int, *, limit: int) -> tuple[Feedback, ...]:  # noqa: D102
        return tuple(map(to_feedback, self._link.rows("feedback", id=lesson_id, limit=limit)))

    def search(self, query: LessonQuery) -> tuple[Candidate, ...]:  # noqa: D102
        if not query.words or not query.scope_ids:
            return ()
        rows = self._link.rows(
            "search",
            expression=expression(query.words),
            scope=query.scope_ids[0],
            other_scope=query.scope_ids[-1],
            after=query.period.after,
            before=query.period.before,
            actor=query.actor,
            limit=query.limit,
        )
        return tuple(Candidate(row["id"], row["score"]) for row in rows)

    def recent_lessons(self, scope_ids: tuple[int, ...], *, limit: int) -> tuple[int, ...]:  # noqa: D102
        if not scope_ids:
            return ()
        rows = self._link.rows("recent_lessons", scope=scope_ids[0], other_scope=scope_ids[-1], limit=limit)
        return tuple(row["id"] for row in rows)

    def receipt(self, scope: ScopeRef, operation_id: str) -> Receipt | None:  # noqa: D102
        row = self._link.row("receipt", scope_key=scope_key(scope), operation_id=operation_id)
        return Receipt(**row) if row else None

    def changes(self, *, after: int, limit: int) -> tuple[Change, ...]:  # noqa: D102
        return tuple(map(to_change, self._link.rows("changes", after=after, limit=limit)))

    def deliveries(self) -> tuple[Delivery, ...]:  # noqa: D102
        return tuple(Delivery(**row) for row in self._link.rows("all_retrievals"))

    def is_authentic(self, change: Change) -> bool | None:  # noqa: D102
        if change.payload is None or change.key_id != key_fingerprint(self._key):
            return None
        return keyed_digest(self._key, change.payload.to_json().encode()) == change.digest

    def erased(self) -> tuple[tuple[ChangeKind, str], ...]:  # noqa: D102
        return tuple((ChangeKind(row["kind"]), row["subject"]) for row in self._link.rows("erasures"))

    def counts(self) -> Counts:  # noqa: D102
        return Counts(**(self._link.row("counts") or {}))

    def fingerprint(self, data: str) -> str:  # noqa: D102
        return f"{key_fingerprint(self._key)}:{keyed_digest(self._key, data.encode())}"


def scope_key(scope: ScopeRef) -> str:
    """A scope's name in the receipts; a project is known by its path before it has a row."""
    return scope.project.path if scope.project else ""
