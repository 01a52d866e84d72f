"""What a search asks for and what a ranking answers with."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from keepwell.model.category import CategoryKind

CANDIDATES: Final = 100
"""How many candidates one ranking gives at most."""


class Visibility(StrEnum):
    """Which scopes a search looks at; it can only narrow what the launch permits."""

    ALL = "all"
    PROJECT = "project"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Period:
    """A span of UTC milliseconds, both ends included; None is no end."""

    after: int | None = None
    before: int | None = None

    def holds(self, ms: int) -> bool:
        """Whether a moment lies within it."""
        return (self.after is None or ms >= self.after) and (self.before is None or ms <= self.before)


ALWAYS: Final = Period()


@dataclass(frozen=True, slots=True)
class LessonQuery:
    """Words to look for among active lessons of the given scopes (ids); no scope means nothing is found.

    `actor` is who saved it: the client, or `person` or `assistant`.
    """

    words: tuple[str, ...]
    scope_ids: tuple[int, ...]
    limit: int = CANDIDATES
    period: Period = ALWAYS
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Words to look for in live categories of the given kinds.

    The period and the actor (a device) are those of a log's entry, or of the category's newest version.
    """

    words: tuple[str, ...]
    kinds: tuple[CategoryKind, ...]
    category: str | None = None
    period: Period = ALWAYS
    actor: str | None = None
    limit: int = CANDIDATES


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that a ranking found. `score` is BM25, larger is better."""

    lesson_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a category that a ranking found: the path of a value, its whole text, the entry of a log or None."""

    category: str
    kind: CategoryKind
    entry_id: int | None
    key_path: str
    text: str
    updated_at: int
    updated_by: str
    score: float
