"""What operations on a store as a whole answer with; `replies` says what holds for all of them."""

from dataclasses import dataclass

from keepwell.operations.category_replies import Diagnosis


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """A verified snapshot, and the older ones that were removed for it."""

    path: str
    categories: int
    lessons: int
    with_backups: bool
    verified: bool
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoredStore:
    """What a restore did: `restored`, `finished` or `undone`; where the former store is."""

    outcome: str
    snapshot: str | None = None
    parked: str | None = None
    categories: int | None = None
    with_backups: bool | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """What verifying found."""

    healthy: bool
    findings: tuple[Diagnosis, ...]


@dataclass(frozen=True, slots=True)
class RebuiltStore:
    """What a rebuild brought back, or would bring back; what could not be read."""

    dry_run: bool
    changes: int
    categories: int
    versions: int
    parked: str | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A file that would be taken in, as it and its category are now."""

    name: str
    action: str
    file_hash: str
    committed_hash: str | None


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of an adoption, written to a file."""

    path: str
    adopt: tuple[PlannedRow, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdoptedRow:
    """A file that was taken in."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adoption took in, and what it left alone."""

    adopted: tuple[AdoptedRow, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A file with everything that the log has."""

    path: str
    scopes: int
    changes: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was erased for good; `clean`: no byte of it is left in the database and its files."""

    subject: str
    clean: bool
    note: str
