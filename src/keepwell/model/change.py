"""Changes: entries of the append-only log from which every other table is derived.

An envelope (ids, stamp, author, keyed digest) stays for ever; the payload, which is the text, stands apart so that it
can be erased without breaking the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from keepwell.model.lesson import Action, Author, Evidence, Status, Verdict
from keepwell.model.scope import ScopeRef
from keepwell.model.text import canonical_json


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """A hybrid clock reading (Kulkarni et al. 2014): UTC milliseconds, a counter within them, the device."""

    ms: int
    counter: int
    device: str

    def next(self, *, now_ms: int, device: str) -> "Stamp":
        """The stamp of a change made after this one: never earlier, whatever the wall clock says."""
        if now_ms > self.ms:
            return Stamp(now_ms, 0, device)
        return Stamp(self.ms, self.counter + 1, device)


FIRST_STAMP = Stamp(0, 0, "")


class ChangeKind(StrEnum):
    """Everything that can be written."""

    LESSON_ADDED = "lesson.added"
    LESSON_ARCHIVED = "lesson.archived"
    LESSON_RATED = "lesson.rated"
    LESSON_FORGOTTEN = "lesson.forgotten"
    CATEGORY_WRITTEN = "category.written"
    CATEGORY_ADOPTED = "category.adopted"
    CATEGORY_RESTORED = "category.restored"
    CATEGORY_DELETED = "category.deleted"
    CATEGORY_FORGOTTEN = "category.forgotten"
    LOG_APPENDED = "log.appended"


@dataclass(frozen=True, slots=True)
class Payload:
    """The text of a change.

    `text` is a lesson's text, a category's canonical document, or what was appended to a log as `appended` writes it.
    """

    text: str | None = None
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None

    def to_json(self) -> str:
        """Canonical JSON; the digest of a change is taken over its UTF-8 bytes."""
        return canonical_json(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The payload as JSON values."""
        return {
            "text": self.text,
            "evidence": [{"description": e.description, "source_uri": e.source_uri} for e in self.evidence],
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, object]) -> Self:
        """The payload that `to_json` wrote, after parsing."""
        evidence = value["evidence"]
        assert isinstance(evidence, list)  # noqa: S101 - our own format; a wrong shape is a fault, not input
        return cls(
            text=_optional_text(value["text"]),
            evidence=tuple(Evidence(e["description"], e["source_uri"]) for e in evidence),
            reason=_optional_text(value["reason"]),
        )


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Draft:
    """A change before the store gives it a uid, a stamp and a digest.

    `subject` is the uid of the lesson or the name of the category that it is about; `supersedes` the uid of the lesson
    that an added one replaces. Categories belong to no scope.
    """

    kind: ChangeKind
    subject: str
    scope: ScopeRef | None
    author: Author
    payload: Payload
    supersedes: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log; `payload` is None once erased. `seq` is local to this store and rises by write order."""

    seq: int
    uid: str
    stamp: Stamp
    kind: ChangeKind
    subject: str
    scope_uid: str | None
    author: Author
    supersedes: str | None
    verdict: Verdict | None
    digest: str
    key_id: str
    payload: Payload | None


@dataclass(slots=True)
class LessonState:
    """What the log says about one lesson."""

    scope_uid: str
    text: str | None
    evidence: tuple[Evidence, ...]
    status: Status
    supersedes: str | None
    author: Author
    created_at: int
    archived_at: int | None = None
    events: list[tuple[Action, str | None, Change]] = field(default_factory=list)
    feedback: list[Change] = field(default_factory=list)


def fold(changes: Iterable[Change]) -> dict[str, LessonState]:
    """The lessons by uid after `changes`, in their order."""
    lessons: dict[str, LessonState] = {}
    for change in changes:
        fold_one(lessons, change)
    return lessons


def fold_one(lessons: dict[str, LessonState], change: Change) -> None:
    """Bring `lessons` up to date with one more change; what names an unknown lesson changes nothing."""
    match change.kind:
        case ChangeKind.LESSON_ADDED:
            _add(lessons, change)
        case ChangeKind.LESSON_ARCHIVED:
            _archive(lessons.get(change.subject), change, Action.ARCHIVED)
        case ChangeKind.LESSON_RATED:
            if lesson := lessons.get(change.subject):
                lesson.feedback.append(change)
        case ChangeKind.LESSON_FORGOTTEN:
            if lesson := lessons.get(change.subject):
                _forget(lesson, change)
        case _:
            return


def _add(lessons: dict[str, LessonState], change: Change) -> None:
    payload = change.payload or Payload()
    lesson = LessonState(
        scope_uid=change.scope_uid or "",
        text=payload.text,
        evidence=payload.evidence,
        status=Status.ACTIVE,
        supersedes=change.supersedes,
        author=change.author,
        created_at=change.stamp.ms,
    )
    lesson.events.append((Action.ADDED, None, change))
    lessons[change.subject] = lesson
    if change.supersedes:
        _archive(lessons.get(change.supersedes), change, Action.SUPERSEDED)


FORGETTING: Final = frozenset({ChangeKind.LESSON_FORGOTTEN, ChangeKind.CATEGORY_FORGOTTEN})
"""The changes after which the texts of a subject are gone for good."""


def _forget(lesson: LessonState, change: Change) -> None:
    lesson.text, lesson.evidence = "", ()
    if lesson.status is Status.ACTIVE:
        lesson.status, lesson.archived_at = Status.ARCHIVED, change.stamp.ms


def _archive(lesson: LessonState | None, change: Change, action: Action) -> None:
    if lesson is None or lesson.status is Status.ARCHIVED:
        return
    lesson.status = Status.ARCHIVED
    lesson.archived_at = change.stamp.ms
    successor = change.subject if action is Action.SUPERSEDED else None
    lesson.events.append((action, successor, change))
