"""Where a lesson belongs: one project, or everywhere. Knows names and paths as text; never looks at the disk."""

from dataclasses import dataclass
from enum import StrEnum


class ScopeKind(StrEnum):
    """The two kinds of scope."""

    PROJECT = "project"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Project:
    """A workspace's identity, resolved once at launch.

    `path` is canonical and absolute: the main Git checkout, or the workspace directory outside Git. `inode` is the
    folder's number on its file system; it survives a rename and lets keepwell offer to relink a moved project.
    """

    path: str
    name: str
    inode: int | None = None


@dataclass(frozen=True, slots=True)
class ScopeRef:
    """What names a scope: `project` is None for the global one."""

    project: Project | None = None

    @property
    def kind(self) -> ScopeKind:
        """Which of the two kinds this is."""
        return ScopeKind.PROJECT if self.project else ScopeKind.GLOBAL


GLOBAL = ScopeRef()


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope as a store keeps it. `created_at` is in UTC milliseconds."""

    id: int
    uid: str
    kind: ScopeKind
    name: str
    project_path: str | None
    folder_inode: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class ScopeSummary:
    """A scope with the number of lessons in it."""

    scope: Scope
    active: int
    archived: int
