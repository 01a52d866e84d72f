"""Finding and reading lessons. Reading counts a delivery; it never changes what is believed."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final, Literal, TypeVar

from keepwell.model.category import CategoryKind
from keepwell.model.errors import Busy, Denied, Invalid, Unsupported
from keepwell.model.lesson import Author, Event, Feedback, Lesson
from keepwell.model.moment import period
from keepwell.model.query import Candidate, DocumentQuery, LessonQuery, Visibility
from keepwell.model.query import Passage as Hit
from keepwell.model.scope import GLOBAL, ScopeRef
from keepwell.operations.library import Library
from keepwell.operations.replies import (
    STORED_DATA,
    Arm,
    Counters,
    Details,
    Found,
    Happening,
    Memory,
    Passage,
    Report,
    Source,
)
from keepwell.search import analyze, rank
from keepwell.store.port import Reader

Reply = TypeVar("Reply", Found, Details)

LESSON: Final = "lesson"
EVERY_KIND: Final = (LESSON, CategoryKind.MEMORY.value, CategoryKind.LOG.value)

PASSAGE_CHARACTERS: Final = 600
"""How much of a long text in a category a search shows."""

_PART: Final = re.compile(r"[^\W_]+")
_ENDING: Final = 3
"""How many letters a stem may lack at the end of a word."""

_STEM: Final = 4
"""How many letters a stem has at least."""

EVENTS_SHOWN: Final = 20
FEEDBACK_SHOWN: Final = 10
TELEMETRY_PATIENCE_MS: Final = 2_000
"""How long a reply may wait for the write lock only to count its delivery."""


def search(
    library: Library,
    *,
    query: str,
    limit: int,
    scope: str,
    kinds: Sequence[str] | None,
    category: str | None,
    updated_after: str | None,
    updated_before: str | None,
    actor: str | None,
) -> Found:
    """Lessons and places in categories that share words with the question, best first, as one list.

    A selector of lessons (`scope`) leaves categories out, one of categories (`category`) leaves lessons out. Disputed
    lessons stand below all others.
    """
    words = analyze.words(query)
    wanted = _wanted_kinds(kinds, scope=scope, category=category)
    when = period(updated_after, updated_before)
    visible = visible_scopes(library, Visibility(scope)) if LESSON in wanted else []
    documents = tuple(CategoryKind(kind) for kind in wanted if kind != LESSON)
    with library.store.reading() as reader:
        lessons = _candidates(reader, visible, LessonQuery(words, (), period=when, actor=actor))
        places = _best_of_each(reader.search_documents(DocumentQuery(words, documents, category, when, actor)))
        memories = tuple(_best(reader, lessons, places, limit, words))
        warnings = tuple(_moved_warning(library, reader, visible))
    arms = [Arm("lessons", "answered", len(lessons))] if LESSON in wanted else []
    arms += [Arm("categories", "answered", len(places))] if documents else []
    project = next((ref.project.path for ref in visible if ref.project), None)
    count = len(lessons) + len(places)
    found = Found(STORED_DATA, project, scope, tuple(arms), count, truncated=False, memories=memories)
    found = _fitted(library, replace(found, warnings=warnings))
    ids = tuple(memory.id for memory in found.memories if isinstance(memory, Memory))
    return _delivered(library, found, ids, method="keyword")


def _wanted_kinds(kinds: Sequence[str] | None, *, scope: str, category: str | None) -> tuple[str, ...]:
    """The kinds that the selectors leave; `Invalid` where they leave none."""
    wanted = tuple(kinds or EVERY_KIND)
    if category is not None:
        wanted = tuple(kind for kind in wanted if kind != LESSON)
    if scope != Visibility.ALL:
        wanted = tuple(kind for kind in wanted if kind == LESSON)
    if not wanted:
        raise Invalid(
            "kinds, scope and category leave nothing to look at.",
            hint="scope chooses among lessons, category among categories; name one of them only.",
        )
    return wanted


def _best_of_each(passages: Iterable[Hit]) -> list[Hit]:
    """The best place of each document and of each entry of a log."""
    best: dict[tuple[str, int | None], Hit] = {}
    for passage in passages:
        best.setdefault((passage.category, passage.entry_id), passage)
    return list(best.values())


def visible_scopes(library: Library, visibility: Visibility) -> list[ScopeRef]:
    """What the launch may read and the selector leaves of it."""
    if visibility is Visibility.GLOBAL:
        library.require_global_read()
        return [GLOBAL]
    project = ScopeRef(library.caller.project())
    if visibility is Visibility.PROJECT or not library.caller.permissions.global_read:
        return [project]
    return [project, GLOBAL]


def _candidates(reader: Reader, visible: Iterable[ScopeRef], query: LessonQuery) -> tuple[Candidate, ...]:
    scope_ids = tuple(scope.id for scope in map(reader.scope, visible) if scope)
    return reader.search(replace(query, scope_ids=scope_ids)) if query.words and scope_ids else ()


def _best(
    reader: Reader, lessons: Sequence[Candidate], places: Sequence[Hit], limit: int, words: tuple[str, ...]
) -> Iterable[Memory | Passage]:
    """The first `limit` of both rankings together, undisputed lessons before disputed ones."""
    disputed: list[Memory] = []
    rankings: tuple[Sequence[Candidate | Hit], ...] = (lessons, places)

    def undisputed() -> Iterable[Memory | Passage]:
        for hit, score in rank.fused(*rankings):
            if isinstance(hit, Hit):
                yield _passage(hit, round(score, 6), words)
            elif (lesson := reader.lesson(hit.lesson_id)) is not None:
                memory = describe(reader, lesson, score=round(score, 6))
                if not memory.disputed:
                    yield memory
                else:
                    disputed.append(memory)

    # `disputed` is full only once the undisputed ones have all been seen, which is when chain reaches it
    return islice(chain(undisputed(), disputed), limit)


def _passage(hit: Hit, score: float, words: tuple[str, ...]) -> Passage:
    text = _around(hit.text, words)
    cut = None if text == hit.text else True
    return Passage(hit.kind, hit.category, hit.entry_id, hit.key_path, text, cut, hit.updated_at, hit.updated_by, score)


def _around(text: str, words: tuple[str, ...]) -> str:
    """The text, or of a long one the part around the first word that was asked for."""
    if len(text) <= PASSAGE_CHARACTERS:
        return text
    first = _first_place(text, words)
    start = max(0, min(first - PASSAGE_CHARACTERS // 4, len(text) - PASSAGE_CHARACTERS))
    return text[start : start + PASSAGE_CHARACTERS]


def _first_place(text: str, words: tuple[str, ...]) -> int:
    """Where the first word stands that was asked for, or else one of the same stem; 0 without one.

    Case, accents and the signs around words make no difference, as they make none to an index.
    """
    wanted = {_folded(part) for word in words for part in _PART.findall(word)}
    stems = tuple(part[: max(_STEM, len(part) - _ENDING)] for part in wanted if len(part) >= _STEM)
    akin = 0
    for said in _PART.finditer(text):
        folded = _folded(said.group())
        if folded in wanted:
            return said.start()
        if not akin and stems and folded.startswith(stems):
            akin = said.start()
    return akin


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    return "".join(sign for sign in unicodedata.normalize("NFKD", word).casefold() if not unicodedata.combining(sign))


def _moved_warning(library: Library, reader: Reader, visible: Iterable[ScopeRef]) -> Iterable[str]:
    """An offer to relink where this project has no memory but its folder had one under a path that is gone."""
    for ref in visible:
        if ref.project is None or reader.scope(ref):
            continue
        moved = reader.moved_scope(ref.project)
        if moved and moved.project_path and not library.folder_exists(moved.project_path):
            yield (
                "Nothing is remembered under this project's present path, but its folder seems to be one that had "
                "lessons under a path that is gone. If it was moved or renamed, ask the user to run: keepwell relink"
            )


def get(
    library: Library,
    *,
    id: int,  # noqa: A002 - the documented name of the parameter
) -> Details:
    """One lesson, active or archived, with its newest changes and reports."""
    with library.store.reading() as reader:
        lesson = library.visible_lesson(reader, id, name="id")
        details = Details(
            STORED_DATA,
            lesson.scope.project_path,
            describe(reader, lesson),
            events=tuple(map(happening, reader.events(id, limit=EVENTS_SHOWN))),
            feedback=tuple(map(_report, reader.feedback(id, limit=FEEDBACK_SHOWN))),
        )
    return _delivered(library, _fitted_details(library, details), (id,), method="get")


def describe(reader: Reader, lesson: Lesson, *, score: float | None = None) -> Memory:
    """A lesson as replies show it."""
    statistics = reader.statistics(lesson.id)
    return Memory(
        id=lesson.id,
        uid=lesson.uid,
        scope=lesson.scope.kind,
        text=lesson.text,
        evidence=lesson.evidence,
        status=lesson.status,
        created_at=lesson.created_at,
        archived_at=lesson.archived_at,
        supersedes_id=lesson.supersedes_id,
        superseded_by=lesson.superseded_by,
        source=_source(lesson.author),
        statistics=Counters(
            statistics.retrieval_count,
            statistics.useful_count,
            statistics.not_useful_count,
            statistics.incorrect_count,
            statistics.outdated_count,
            statistics.last_retrieved_at,
            statistics.last_feedback_at,
        ),
        disputed=statistics.disputed,
        score=score,
    )


def happening(event: Event) -> Happening:
    """An event as replies show it."""
    return Happening(
        event.id,
        event.action,
        event.reason,
        event.successor_id,
        event.author.actor,
        _source(event.author),
        event.created_at,
    )


def _report(feedback: Feedback) -> Report:
    return Report(feedback.id, feedback.verdict, feedback.reason, _source(feedback.author), feedback.created_at)


def _source(author: Author) -> Source:
    return Source(author.client, author.session, author.model)


def _fitted(library: Library, found: Found) -> Found:
    """The reply without as many of its last memories as do not fit."""
    while found.memories and not library.caller.fits(found):
        found = replace(found, memories=found.memories[:-1], truncated=True)
    return found


def _fitted_details(library: Library, details: Details) -> Details:
    """The reply without as many of its oldest reports and events as do not fit."""
    while not library.caller.fits(details) and (details.feedback or details.events):
        longer: Literal["feedback", "events"]
        longer = "feedback" if len(details.feedback) * 2 >= len(details.events) else "events"
        details = replace(details, **{longer: getattr(details, longer)[:-1]}, truncated=True)
    return details


def _delivered(library: Library, reply: Reply, lesson_ids: tuple[int, ...], *, method: str) -> Reply:
    """The reply with its delivery counted; what was found is worth more than the count, so a failure is only told."""
    if not lesson_ids or not library.caller.counts_retrievals:
        return reply
    try:
        with library.store.writing(patience_ms=TELEMETRY_PATIENCE_MS) as writer:
            request_id = writer.record_retrievals(lesson_ids, method=method)
    except (Busy, Denied, Unsupported) as error:
        warning = f"This delivery was not counted: {error.sentence}"
        return replace(reply, warnings=(*reply.warnings, warning))
    return replace(reply, request_id=request_id)
