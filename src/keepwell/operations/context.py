"""Several categories and lessons in one answer, within a budget: for the beginning of a session.

The answer depends on what is asked and on what is stored, and on nothing else, so that caches of prompts can keep it.
"""

from collections.abc import Sequence
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
_OVERHEAD: Final = 40
"""Tokens that a piece needs for its name, hash and the rest."""


def context(
    library: Library, *, categories: Sequence[str], fields: str | None, budget_tokens: int, lessons: int
) -> Context:
    """The categories in the order asked for, each as much of it as still fits, then the newest lessons."""
    pieces: list[Piece] = []
    trimmed: list[Omission] = []
    failed: list[Omission] = []
    room = budget_tokens
    with library.store.reading() as reader:
        for name in categories:
            try:
                document = present(reader, name)
                if document is None:
                    raise NotFound("there is no such category.")
            except KeepwellError as error:
                failed.append(Omission(name, error.line))
                continue
            piece = _piece(document, fields, room)
            if piece is None:
                trimmed.append(Omission(name, f"{room:,} tokens were left, too few for any of it."))
                continue
            if piece.omitted:
                trimmed.append(Omission(name, f"did not fit into the budget: {', '.join(piece.omitted)}"))
            pieces.append(piece)
            room -= piece.tokens
        lines, left_out = _lessons(library, reader, lessons, room)
    room -= sum(_tokens(line.text) + _OVERHEAD for line in lines)
    if left_out:
        trimmed.append(Omission("lessons", f"{left_out} did not fit into the budget."))
    used = budget_tokens - room
    return Context(STORED_DATA, budget_tokens, used, tuple(pieces), lines, tuple(trimmed), tuple(failed))


def _piece(document: Document, fields: str | None, room: int) -> Piece | None:
    """As much of a document as fits into that many tokens; None if nothing does."""
    whole = narrowed(document.data, fields, None)
    if _tokens(whole) + _OVERHEAD <= room:
        return _as_piece(document, whole, ())
    if journal.kind_of(whole) is CategoryKind.LOG:
        kept, omitted = _newest_entries(whole, room - _OVERHEAD)
    elif isinstance(whole, dict):
        kept, omitted = _some_keys(whole, room - _OVERHEAD)
    else:
        return None
    return _as_piece(document, kept, omitted) if kept else None


def _as_piece(document: Document, kept: Any, omitted: tuple[str, ...]) -> Piece:
    facts = document.category
    edited = document.edited_outside or None
    return Piece(facts.name, facts.kind, facts.hash, _tokens(kept) + _OVERHEAD, kept, edited, omitted or None)


def _some_keys(data: dict[str, Any], room: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    kept: dict[str, Any] = {}
    omitted = []
    for key, value in data.items():
        if _tokens(kept | {key: value}) <= room:
            kept[key] = value
        else:
            omitted.append(key)
    return kept, tuple(omitted)


def _newest_entries(data: dict[str, Any], room: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    entries: list[Any] = []
    left = room - _tokens({**data, "entries": []})
    for entry in reversed(data["entries"]):
        left -= _tokens(entry) + 1
        if left < 0:
            break
        entries.insert(0, entry)
    if not entries:
        return {}, ("entries",)
    return {**data, "entries": entries}, (f"entries before id {entries[0]['id']}",)


def _lessons(library: Library, reader: Reader, wanted: int, room: int) -> tuple[tuple[LessonLine, ...], int]:
    """The newest lessons that fit, and how many of the wanted ones do not."""
    if not wanted:
        return (), 0
    scopes = [scope for scope in map(reader.scope, visible_scopes(library, Visibility.ALL)) if scope]
    ids = reader.recent_lessons(tuple(scope.id for scope in scopes), limit=wanted)
    found = [lesson for lesson in map(reader.lesson, ids) if lesson]
    lines: list[LessonLine] = []
    for lesson in found:
        room -= _tokens(lesson.text) + _OVERHEAD
        if room < 0:
            break
        lines.append(LessonLine(lesson.id, lesson.scope.kind, lesson.text))
    return tuple(lines), len(found) - len(lines)


def _tokens(value: object) -> int:
    size = len(jsonform.compact(value).encode())
    return -(-size // _BYTES_A_TOKEN)
