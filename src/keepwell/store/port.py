"""The contract of an engine. Nothing above this module knows which engine runs.

All engines: reads see one instant; a write transaction is exclusive across threads and processes, is whole or absent,
and is durable once its block has ended without an error. Lessons and their text never change after `append`.

Every method may raise `Busy` (another process holds the store for longer than the lock budget; nothing was changed),
`Corrupt` (stored data is damaged), `Denied` (a file or folder may not be read or written, or the disk is full) and
`Unsupported`. Methods may be called from any thread; a `Reader` or `Writer` belongs to the thread that opened it and
ends with its block.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from keepwell.model.category import Category, Compacted, Document, Heading, Version
from keepwell.model.census import Counts
from keepwell.model.change import Change, ChangeKind, Draft
from keepwell.model.lesson import Event, Feedback, Lesson, Statistics
from keepwell.model.query import Candidate, DocumentQuery, LessonQuery, Passage
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
    categories_dir: str | None
    backups_dir: str | None
    free_bytes: int | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many backup files were removed, or would be, and their size."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be: a code, what it is about, a sentence, and what to do, which `mend` may."""

    code: str
    subject: str
    problem: str
    remedy: str
    mendable: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """One counted delivery of a lesson."""

    lesson_uid: str
    request_id: int
    method: str
    at: int


@dataclass(frozen=True, slots=True)
class Foreign:
    """A change that another program's store stands for: its draft, a uid that stays the same, its time, its place."""

    draft: Draft
    uid: str
    ms: int
    place: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place in another program's store that cannot be read, and why."""

    place: str
    problem: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A file that says something else than its category, or that no category has.

    `file_hash` is SHA-256 of the file's bytes, `committed_hash` that of the document which keepwell wrote, None without
    one. `text` is the canonical document; None, with the `problem`, where the file holds none.
    """

    name: str
    file_hash: str
    committed_hash: str | None
    text: str | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot's folder and manifest, and the older ones that were removed."""

    path: str
    manifest: dict[str, Any]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore put in place, and where the former store is."""

    snapshot: str
    parked: str
    categories: int
    with_backups: bool


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild brought back, where the former database is, and what could not be read."""

    changes: int
    categories: int
    versions: int
    parked: str | None
    problems: tuple[str, ...]


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

    def erased(self) -> tuple[tuple[ChangeKind, str], ...]:
        """What was forgotten for good: by which kind of change, and its subject."""

    def counts(self) -> Counts:
        """How many rows there are."""

    def recent_lessons(self, scope_ids: tuple[int, ...], *, limit: int) -> tuple[int, ...]:
        """The ids of the newest active lessons of these scopes, newest first."""

    def heading(self, name: str) -> Heading | None:
        """The category, deleted ones too, by any spelling of its name that `category.name_key` counts as the same."""

    def entry_count(self, name: str) -> int:
        """How many entries a log has."""

    def categories(self, *, after: str, limit: int) -> tuple[Category, ...]:
        """Live categories in the order of their names, from the one that follows `after`."""

    def document(self, name: str) -> Document | None:
        """What a live category holds, by its exact name; what a hand has put into its file is served and marked.

        `Corrupt` where that cannot be read.
        """

    def versions(self, name: str, *, limit: int, before: int | None) -> tuple[Version, ...]:
        """The newest versions first, without their texts; with `before` those with smaller ids."""

    def version(self, name: str, version_id: int) -> Version | None:
        """One version of that category, with its text unless that was not kept."""

    def text_of(self, name: str, content_hash: str) -> str | None:
        """The canonical document of that category that has this hash, if a version of it was kept."""

    def compactable(self, name: str, *, keep_versions: int) -> Compacted:
        """How many versions `compact` would remove."""

    def search_documents(self, query: DocumentQuery) -> tuple[Passage, ...]:
        """Places in live categories that hold at least one of the query's words, best first."""

    def edits(self, name: str | None = None) -> tuple[Edit, ...]:
        """What hands have written into files, of all categories and none, or of one name."""

    def dirty(self) -> tuple[str, ...]:
        """The categories that no other machine has seen since they were changed, longest ago first."""

    def deliveries(self) -> tuple[Delivery, ...]:
        """Every counted delivery, oldest first."""

    def is_authentic(self, change: Change) -> bool | None:
        """Whether a change's text is what its digest was taken over; None where the key or the text is missing."""

    def fingerprint(self, data: str) -> str:
        """Keyed digest of a text, prefixed by the key's name; never reveals the text."""


class Writer(Reader, Protocol):
    """A write transaction; it also sees what it wrote."""

    def append(self, draft: Draft) -> int:
        """Add one change to the log, let every view follow it, and give the local id of what it made or changed:
        the lesson, the category's version, or the log's entry.

        Makes the scope where needed. An added lesson that supersedes another archives it in the same step. A category
        is made where needed; `Conflict` if there is one whose name differs only by case or form.
        """

    def take(self, change: Change, scope: Scope | None) -> bool:
        """Add a change that was made elsewhere, or before, as it is; False, and nothing happens, if it is here already.

        Rows follow as far as they can: what is older than what a category holds becomes a version only, what is about
        an unknown or otherwise changed lesson is in the log alone.
        """

    def record(self, draft: Draft, *, uid: str, ms: int) -> bool:
        """Append a change under a uid and a time (UTC milliseconds) that its source gives; False if it is here already.

        Rows follow as for `take`.
        """

    def compact(self, name: str, *, keep_versions: int) -> Compacted:
        """Remove all but the newest versions with their texts, and the entries that a log's bounds do not keep."""

    def take_back(self) -> None:
        """Let nothing of this transaction be kept when its block ends."""

    def take_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Add deliveries that were counted elsewhere; those that are here already are passed over."""

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

    def settle(self, *, patience_ms: int | None = None) -> None:
        """Let the files of logs hold all their entries; does nothing where they do, or where there are no files."""

    def prune_backups(self, *, older_than_days: int, dry_run: bool) -> Pruned:
        """Remove the backups of categories that were made more days ago, or say how many it would."""

    def findings(self) -> tuple[Finding, ...]:
        """What is not as it should be around the database: files, permissions, disk. Nothing is changed."""

    def mend(self) -> tuple[str, ...]:
        """Repair what is safe to repair, and say in a sentence each what was done."""

    def backup(self, target: Path) -> Counts:
        """Write a verified copy of one instant to a file that must not exist yet, and say what it holds.

        On any failure nothing is left at `target`.
        """

    def snapshot(self, folder: Path, *, with_backups: bool, keep: int | None, facts: dict[str, Any]) -> Snapshot:
        """Write database and files of one instant, verified, into a folder that must not exist yet.

        With `keep` the folder collects snapshots named by their time, and the oldest beyond that many are removed.
        Writers wait while it runs, readers do not. `facts` are added to the manifest.
        """

    def scrub(self) -> bool:
        """Leave no byte of what was erased in the database's files; False while a reader holds on to some."""

    def interrupt(self) -> None:
        """Stop waiting for locks and end running statements; they raise `Busy`."""

    def close(self) -> None:
        """Release the store; blocks that are still open end first."""


class Vault(Protocol):
    """A store that is not open: for what must be done to it as a whole."""

    def verify(self) -> tuple[Finding, ...]:
        """Everything that is wrong, found by reading only; empty when all is well."""

    def restore(self, snapshot: Path, *, with_forgotten: bool) -> Restored:
        """Put a verified snapshot in the store's place and park the store; `Busy` while a process has it open.

        What the store has forgotten since is forgotten in the snapshot's copy too, unless `with_forgotten`.
        """

    def finish_restore(self) -> str:
        """Do the rest of a restore that was interrupted; says where the former store is."""

    def undo_restore(self) -> str:
        """Take a restore that was interrupted back; says which snapshot it was of."""

    def rebuild(self, *, dry_run: bool) -> Rebuilt:
        """Make the database again from what its log and the files of categories say, and park the former one."""
