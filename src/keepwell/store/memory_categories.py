"""The part of the reference engine that is about categories: answers worked out from the log."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from keepwell.model import journal, jsonform
from keepwell.model.catalog import CategoryState, fold_categories
from keepwell.model.category import Category, CategoryKind, Compacted, Document, Heading, Version, leaves, name_key
from keepwell.model.change import Change
from keepwell.model.query import DocumentQuery, Passage
from keepwell.store.port import Edit

TEXT_WEIGHT: Final = 4.0
_PATH_WEIGHT: Final = 0.4


class MemoryCategories:
    """The part of `store.port.Reader` that is about categories, over a log."""

    def __init__(self, log: list[Change]) -> None:
        self._log = log

    @property
    def _states(self) -> dict[str, CategoryState]:
        return fold_categories(self._log)

    def _state(self, name: str) -> CategoryState | None:
        key = name_key(name)
        return next((state for state in self._states.values() if name_key(state.name) == key), None)

    def heading(self, name: str) -> Heading | None:  # noqa: D102
        state = self._state(name)
        return state.heading if state else None

    def entry_count(self, name: str) -> int:  # noqa: D102
        state = self._states.get(name)
        return len(state.entries) if state else 0

    def text_of(self, name: str, content_hash: str) -> str | None:  # noqa: D102
        state = self._states.get(name)
        texts = [version.text for version in state.versions if version.hash == content_hash] if state else []
        return texts[-1] if texts else None

    def compactable(self, name: str, *, keep_versions: int) -> Compacted:  # noqa: D102
        state = self._states.get(name)
        return Compacted(max(0, len(state.versions) - keep_versions) if state else 0, 0)

    def categories(self, *, after: str, limit: int) -> tuple[Category, ...]:  # noqa: D102
        live = [state for state in self._states.values() if state.deleted_at is None and state.name > after]
        return tuple(state.as_category for state in sorted(live, key=lambda state: state.name)[:limit])

    def document(self, name: str) -> Document | None:  # noqa: D102
        state = self._states.get(name)
        return Document(state.as_category, state.text) if state and state.deleted_at is None else None

    def versions(self, name: str, *, limit: int, before: int | None) -> tuple[Version, ...]:  # noqa: D102
        state = self._states.get(name)
        found = [version for version in state.versions if before is None or version.id < before] if state else []
        return tuple(replace(version, text=None) for version in reversed(found))[:limit]

    def version(self, name: str, version_id: int) -> Version | None:  # noqa: D102
        state = self._states.get(name)
        return next((version for version in state.versions if version.id == version_id), None) if state else None

    def search_documents(self, query: DocumentQuery) -> tuple[Passage, ...]:  # noqa: D102
        asked = {part for word in query.words for part in parts(word)}
        passages = [passage for state in self._states.values() for passage in _passages(state, query)]
        scored = [
            replace(passage, score=TEXT_WEIGHT * len(asked & parts(passage.text)) + _shared(asked, passage.key_path))
            for passage in passages
        ]
        return tuple(sorted((hit for hit in scored if hit.score), key=lambda hit: -hit.score)[: query.limit])

    def edits(self, name: str | None = None) -> tuple[Edit, ...]:  # noqa: ARG002, D102
        return ()

    def dirty(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(state.name for state in sorted(self._states.values(), key=lambda state: state.updated_at))


def _passages(state: CategoryState, query: DocumentQuery) -> Iterator[Passage]:
    """Every place of a category that the query's filters let through."""
    wanted = state.deleted_at is None and state.kind in query.kinds and query.category in (None, state.name)
    if not wanted:
        return
    pieces: list[tuple[int | None, int, str, str]] = []
    if state.kind is CategoryKind.LOG:
        for entry in state.entries:
            at = journal.milliseconds(entry.ts) or state.updated_at
            pieces += [(entry.id, at, path, text) for path, text in leaves(jsonform.read(entry.text))]
    else:
        pieces += [(None, state.updated_at, path, text) for path, text in leaves(state.document)]
    for entry_id, at, path, text in pieces:
        if query.period.holds(at) and query.actor in (None, state.updated_by):
            yield Passage(state.name, state.kind, entry_id, path, text, at, state.updated_by, 0.0)


def _shared(asked: set[str], path: str) -> float:
    return _PATH_WEIGHT * len(asked & parts(path))


def parts(text: str) -> set[str]:
    """The words of a text, folded."""
    return set(re.findall(r"\w+", text.casefold()))
