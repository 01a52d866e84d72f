"""Several categories and lessons in one answer, within a budget: for the beginning of a session.

The answer depends on what is asked and on what is stored, and on nothing else, so that caches of prompts can keep it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from itertools import accumulate
from typing import Any, Final

from keepwell.model import journal, jsonform
from keepwell.model.category import CategoryKind, Document
from keepwell.model.errors import KeepwellError, NotFound
from keepwell.model.query import Visibility
from keepwell.operations.categories import narrowed, present
from keepwell.operations.category_replies import Context, LessonLine, Omission, Piece
from keepwell.operations.library import Library
from keepwell.operations.recall import visible_scopes
from keepwell.operations.replies import STORED_DATA
from keepwell.store.port import Reader

_BYTES_A_TOKEN: Final = 4
_NAMES_TOLD: Final = 10
_ROOM_TO_TELL: Final = 20
"""Tokens that are kept for saying what was left out."""

_SHARE_TO_TELL: Final = 8
"""Which part of what a piece may have is kept for the names of what was left out: one in so many."""

_SMALLEST_ROOM: Final = 100


def context(
    library: Library, *, categories: Sequence[str], fields: str | None, budget_tokens: int, lessons: int
) -> Context:
    """The categories in the order asked for, each as much of it as still fits, then the newest lessons.

    The budget bounds the categories and lessons as they are answered; what was left out is told beside them. Where a
    surface carries less than the budget, that is the bound.
    """
    with library.store.reading() as reader:
        found = {name: _looked_up(reader, name, fields) for name in categories}
        newest = _newest_lessons(library, reader, lessons)
    room = budget_tokens
    reply = _composed(found, newest, budget_tokens, room)
    while room > _SMALLEST_ROOM and not library.caller.fits(reply):
        room = room * 3 // 4
        reply = _composed(found, newest, budget_tokens, room)
    return reply


@dataclass(frozen=True, slots=True)
class _Found:
    """A category as it was asked for."""

    document: Document
    whole: Any


def _looked_up(reader: Reader, name: str, fields: str | None) -> _Found | KeepwellError:
    """What a name leads to, or why it leads to nothing."""
    try:
        document = present(reader, name)
    except KeepwellError as error:
        return error
    if document is None:
        return NotFound("there is no such category.")
    return _Found(document, narrowed(document.data, fields, None))


def _composed(
    found: Mapping[str, _Found | KeepwellError], newest: Sequence[LessonLine], budget: int, room: int
) -> Context:
    pieces: list[Piece] = []
    trimmed: list[Omission] = []
    left = room
    for name, each in found.items():
        if isinstance(each, KeepwellError):
            continue
        piece = _piece(each.document, each.whole, left)
        if piece is None:
            trimmed.append(Omission(name, f"{left:,} tokens were left, too few for any of it."))
            continue
        if piece.omitted:
            trimmed.append(Omission(name, f"did not fit into the budget: {', '.join(piece.omitted)}"))
        pieces.append(piece)
        left -= piece.tokens
    lines = _fitting(newest, left)
    left -= sum(map(_line_tokens, lines))
    if len(lines) < len(newest):
        trimmed.append(Omission("lessons", f"{len(newest) - len(lines)} did not fit into the budget."))
    failed = tuple(Omission(name, each.line) for name, each in found.items() if isinstance(each, KeepwellError))
    return Context(STORED_DATA, budget, room - left, tuple(pieces), lines, tuple(trimmed), failed)


def _piece(document: Document, whole: Any, room: int) -> Piece | None:
    """As much of a document as fits into that many tokens; None if nothing does."""
    piece = _as_piece(document, whole, None)
    if piece.tokens <= room:
        return piece
    room -= _as_piece(document, None, None).tokens + _ROOM_TO_TELL
    if journal.kind_of(whole) is CategoryKind.LOG:
        kept, omitted = _newest_entries(whole, room)
    elif isinstance(whole, dict):
        kept, omitted = _some_keys(whole, room)
    else:
        return None
    return _as_piece(document, kept, omitted) if kept else None


def _as_piece(document: Document, kept: Any, omitted: tuple[str, ...] | None) -> Piece:
    facts = document.category
    edited = document.edited_outside or None
    piece = Piece(facts.name, facts.kind, facts.hash, 0, kept, edited, omitted)
    told = {field.name: value for field in dataclass_fields(piece) if (value := getattr(piece, field.name)) is not None}
    # room for the number that says so itself
    return replace(piece, tokens=_tokens(told) + 1)


def _some_keys(data: dict[str, Any], room: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    kept: dict[str, Any] = {}
    omitted = []
    to_tell = room // _SHARE_TO_TELL
    left = (room - to_tell) * _BYTES_A_TOKEN
    for key, value in data.items():
        size = len(jsonform.compact({key: value}).encode())
        if size <= left:
            kept[key] = value
            left -= size
        else:
            omitted.append(key)
    return kept, _told(omitted, to_tell)


def _told(names: Sequence[str], room: int) -> tuple[str, ...]:
    """The first names, as many as there is room for, and how many more there are."""
    told: list[str] = []
    for name in names[:_NAMES_TOLD]:
        room -= _tokens(name) + 1
        if room < 0:
            break
        told.append(name)
    more = len(names) - len(told)
    return (*told, f"{more:,} more") if more else tuple(told)


def _newest_entries(data: dict[str, Any], room: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    entries: list[Any] = []
    left = room - _tokens({**data, "entries": []})
    for entry in reversed(data["entries"]):
        left -= _tokens(entry) + 1
        if left < 0:
            break
        entries.append(entry)
    if not entries:
        return {}, ("entries",)
    return {**data, "entries": entries[::-1]}, (f"entries before id {entries[-1]['id']}",)


def _newest_lessons(library: Library, reader: Reader, wanted: int) -> tuple[LessonLine, ...]:
    if not wanted:
        return ()
    scopes = [scope for scope in map(reader.scope, visible_scopes(library, Visibility.ALL)) if scope]
    ids = reader.recent_lessons(tuple(scope.id for scope in scopes), limit=wanted)
    found = [lesson for lesson in map(reader.lesson, ids) if lesson]
    return tuple(LessonLine(lesson.id, lesson.scope.kind, lesson.text) for lesson in found)


def _fitting(newest: Sequence[LessonLine], room: int) -> tuple[LessonLine, ...]:
    """The newest of them that fit."""
    used = accumulate(map(_line_tokens, newest))
    return tuple(line for line, so_far in zip(newest, used, strict=True) if so_far <= room)


def _line_tokens(line: LessonLine) -> int:
    return _tokens({"id": line.id, "scope": line.scope, "text": line.text}) + 1


def _tokens(value: object) -> int:
    size = len(jsonform.compact(value).encode())
    return -(-size // _BYTES_A_TOKEN)
