"""Lessons: short immutable texts with evidence, and what was reported about them. Times are UTC milliseconds."""

from dataclasses import dataclass
from enum import StrEnum

from keepwell.model.scope import Scope


class Status(StrEnum):
    """A lesson is active until it is archived; nothing makes it active again."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class Verdict(StrEnum):
    """What a report can say about a lesson."""

    USEFUL = "useful"
    NOT_USEFUL = "not_useful"
    INCORRECT = "incorrect"
    OUTDATED = "outdated"


DISPUTING = frozenset({Verdict.INCORRECT, Verdict.OUTDATED})
"""The verdicts that say a lesson no longer holds."""


class Action(StrEnum):
    """What happened to a lesson."""

    ADDED = "added"
    ARCHIVED = "archived"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a lesson is believed; the reference is stored, never fetched."""

    description: str
    source_uri: str | None = None


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a change: an assistant or a person, and the launcher's word for client, session and model."""

    actor: str
    client: str = "unknown"
    session: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson. `id` is local to this store, `uid` (UUIDv7) is the same on every device."""

    id: int
    uid: str
    scope: Scope
    text: str
    evidence: tuple[Evidence, ...]
    status: Status
    supersedes_id: int | None
    superseded_by: tuple[int, ...]
    author: Author
    created_at: int
    archived_at: int | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts derived from the append-only retrievals and feedback of one lesson.

    Reports are subjective and can repeat: they are reports, not independent confirmations. `last_verdict` is the
    newest report's, None while there is none.
    """

    retrieval_count: int = 0
    useful_count: int = 0
    not_useful_count: int = 0
    incorrect_count: int = 0
    outdated_count: int = 0
    last_retrieved_at: int | None = None
    last_feedback_at: int | None = None
    last_verdict: Verdict | None = None

    @property
    def disputed(self) -> bool:
        """Whether the newest report says that the lesson no longer holds."""
        return self.last_verdict in DISPUTING


@dataclass(frozen=True, slots=True)
class Event:
    """One change in a lesson's life. `successor_id` is set where it was superseded."""

    id: int
    action: Action
    author: Author
    reason: str | None
    successor_id: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """One report on a lesson."""

    id: int
    verdict: Verdict
    reason: str | None
    author: Author
    created_at: int
