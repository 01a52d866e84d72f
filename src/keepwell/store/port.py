"""The contract of an engine. Nothing above this module knows which engine runs.

All engines: reads see one instant; a write transaction is exclusive across threads and processes, is whole or absent,
and is durable once its block has ended without an error. Lessons and their text never change after `append`.

Every method may raise `Busy` (another process holds the store for longer than the lock budget; nothing was changed),
`Corrupt` (stored data is damaged), `Denied` (a file or folder may not be read or written, or the disk is full) and
`Unsupported`. Methods may be called from any thread; a `Reader` or `Writer` belongs to the thread that opened it and
ends with its block.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from keepwell.model.census import Counts
from keepwell.model.change import Change, Draft
from keepwell.model.lesson import Event, Feedback, Lesson, Statistics
from keepwell.model.query import Candidate, LessonQuery
from keepwell.model.scope import Project, Scope, ScopeRef, ScopeSummary


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What differs between engines. `durable`: an acknowledged write survives the process and a power loss."""

    name: str
    durable: bool
    multi_process: bool
    backup: bool


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Where a store is and how it runs. Paths are absolute; sizes in bytes; None where an engine has no such thing."""

    engine: str
    database: str | None
    writable: bool
    schema_version: int
    journal_mode: str | None
    synchronous: str | None
    file_system: str | None
    database_bytes: int | None
    wal_bytes: int | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client's operation id led to the first time: the operation, a digest of its arguments, its result."""

    operation: str
    fingerprint: str
    result: str


class Reader(Protocol):
    """One instant of a store."""

    def scope(self, ref: ScopeRef) -> Scope | None:
        """The scope, or None while nothing was ever written to it."""

    def moved_scope(self, project: Project) -> Scope | None:
        """A project scope that was recorded under another path but for the same folder (`inode`), newest first."""

    def scopes(self) -> tuple[ScopeSummary, ...]:
        """Every scope with its numbers of lessons, the global one first, then by path."""

    def lesson(self, lesson_id: int) -> Lesson | None:
        """The lesson of any scope and status."""

    def active_lesson(self, scope: Scope, text_hash: str) -> Lesson | None:
        """The active lesson of that scope with that normalised text; there is at most one."""

    def statistics(self, lesson_id: int) -> Statistics:
        """Counted afresh from the events."""

    def events(self, lesson_id: int, *, limit: int) -> tuple[Event, ...]:
        """The newest events first."""

    def feedback(self, lesson_id: int, *, limit: int) -> tuple[Feedback, ...]:
        """The newest reports first."""

    def search(self, query: LessonQuery) -> tuple[Candidate, ...]:
        """Active lessons of the query's scopes that hold at least one of its words, best first, ties newest first."""

    def receipt(self, scope: ScopeRef, operation_id: str) -> Receipt | None:
        """What was remembered for this operation id in this launch scope."""

    def changes(self, *, after: int, limit: int) -> tuple[Change, ...]:
        """The log after a `seq`, oldest first."""

    def counts(self) -> Counts:
        """How many rows there are."""

    def fingerprint(self, data: str) -> str:
        """Keyed digest of a text, prefixed by the key's name; never reveals the text."""


class Writer(Reader, Protocol):
    """A write transaction; it also sees what it wrote."""

    def append(self, draft: Draft) -> int:
        """Add one change to the log, let every view follow it, and give the local id of the lesson it is about.

        Makes the scope where needed. An added lesson that supersedes another archives it in the same step.
        """

    def record_retrievals(self, lesson_ids: tuple[int, ...], *, method: str) -> int:
        """Count one prepared delivery of each lesson under a new request id, which is returned."""

    def remember(self, scope: ScopeRef, operation_id: str, receipt: Receipt) -> None:
        """Keep what an operation id led to."""

    def relink(self, scope: Scope, project: Project) -> None:
        """Let a project scope follow its folder to a new path; `Conflict` if that path has a scope already."""


class Store(Protocol):
    """An engine with an open store."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""

    def reading(self) -> AbstractContextManager[Reader]:
        """A block that sees one instant; it never waits for a writer."""

    def writing(self, *, patience_ms: int | None = None) -> AbstractContextManager[Writer]:
        """A write transaction: committed and durable when the block ends, undone when it raises.

        Waits for other writers up to the lock budget, or `patience_ms` if that is shorter, then raises `Busy`.
        """

    def status(self) -> StoreStatus:
        """Where the store is and how it runs."""

    def check(self) -> tuple[str, ...]:
        """Faults found by reading everything: file integrity, full-text index against rows. Empty when all is well."""

    def backup(self, target: Path) -> Counts:
        """Write a verified copy of one instant to a file that must not exist yet, and say what it holds.

        On any failure nothing is left at `target`.
        """

    def interrupt(self) -> None:
        """Stop waiting for locks and end running statements; they raise `Busy`."""

    def close(self) -> None:
        """Release the store; blocks that are still open end first."""
