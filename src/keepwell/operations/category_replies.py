"""What operations on categories answer with; `replies` says what holds for all of them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Read:
    """A category's document. `omitted` names the top-level keys or the entries that were left out for length."""

    notice: str
    category: str
    kind: str
    hash: str
    version: int
    updated_at: int | None
    updated_by: str | None
    size_bytes: int
    data: Any
    edited_outside: bool | None = None
    truncated: bool | None = None
    omitted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a write: `created`, `replaced`, `merged`, `restored`, or `unchanged`."""

    category: str
    kind: str
    outcome: str
    hash: str
    previous_hash: str | None
    version: int
    updated_at: int
    size_bytes: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """The entry that was added. `repeated`: this is the first answer to an operation id that was used before."""

    category: str
    kind: str
    id: int
    ts: str
    total_entries: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Removed:
    """A category that was deleted; its versions stay."""

    category: str
    kind: str
    hash: str
    version: int
    deleted_at: int
    note: str


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """A category in a list."""

    name: str
    kind: str
    hash: str
    size_bytes: int
    version: int
    updated_at: int
    updated_by: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Categories by name. `next` is the name to go on after, if there are more."""

    total: int
    categories: tuple[CategoryRow, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of a category."""

    version: int
    action: str
    hash: str
    previous_hash: str | None
    size_bytes: int
    actor: str
    reason: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do to an older document to get the newer one, by JSON Pointer (RFC 6901)."""

    added: dict[str, Any]
    removed: tuple[str, ...]
    changed: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Versions:
    """A category's versions, newest first; or one version's document; or what changed between two."""

    notice: str
    category: str
    kind: str
    deleted_at: int | None
    versions: tuple[VersionRow, ...]
    next: int | None = None
    data: Any = None
    changes: Changes | None = None
    truncated: bool | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed since a hash.

    `status` is `unchanged`, `changed` with the changes, `replaced` with the whole document, or `deleted`.
    """

    notice: str
    category: str
    status: str
    hash: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    deleted_at: int | None = None
    changes: Changes | None = None
    data: Any = None
    edited_outside: bool | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """One category in a context. `omitted` names what did not fit."""

    category: str
    kind: str
    hash: str
    tokens: int
    data: Any
    edited_outside: bool | None = None
    omitted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Omission:
    """A category, or `lessons`, that is not in a context, and why."""

    category: str
    reason: str


@dataclass(frozen=True, slots=True)
class LessonLine:
    """A lesson in a context."""

    id: int
    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """Several categories within a budget, in the order asked for: the same for the same state, to the byte."""

    notice: str
    budget_tokens: int
    used_tokens: int
    categories: tuple[Piece, ...]
    lessons: tuple[LessonLine, ...]
    trimmed: tuple[Omission, ...]
    failed: tuple[Omission, ...]


@dataclass(frozen=True, slots=True)
class CompactedRow:
    """What was removed of one category, or would be."""

    category: str
    versions: int
    entries: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction removed, or with `dry_run` would remove."""

    dry_run: bool
    keep_versions: int
    categories: tuple[CompactedRow, ...]
    skipped: tuple[str, ...]
    backups: int
    backup_bytes: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding of the doctor."""

    code: str
    subject: str
    problem: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """What the doctor found, and with `fix` what it did."""

    healthy: bool
    findings: tuple[Diagnosis, ...]
    fixed: tuple[str, ...]
