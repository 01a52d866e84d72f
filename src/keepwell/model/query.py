"""What a search asks for and what a ranking answers with."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CANDIDATES: Final = 100
"""How many candidates one ranking gives at most."""


class Visibility(StrEnum):
    """Which scopes a search looks at; it can only narrow what the launch permits."""

    ALL = "all"
    PROJECT = "project"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class LessonQuery:
    """Words to look for among active lessons of the given scopes (ids); no scope means nothing is found."""

    words: tuple[str, ...]
    scope_ids: tuple[int, ...]
    limit: int = CANDIDATES


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that a ranking found. `score` is BM25, larger is better."""

    lesson_id: int
    score: float
