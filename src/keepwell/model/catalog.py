"""What the log of changes says about categories: their documents, their entries and their versions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from keepwell.model import journal, jsonform
from keepwell.model.category import Category, CategoryKind, Heading, Retention, Version, VersionAction
from keepwell.model.change import Change, ChangeKind
from keepwell.model.journal import Entry

_ACTIONS: Final = {
    ChangeKind.CATEGORY_WRITTEN: VersionAction.WRITTEN,
    ChangeKind.CATEGORY_ADOPTED: VersionAction.ADOPTED,
    ChangeKind.CATEGORY_RESTORED: VersionAction.RESTORED,
    ChangeKind.CATEGORY_DELETED: VersionAction.DELETED,
}


@dataclass(slots=True)
class CategoryState:
    """One category as the log tells it. `document` is a memory's whole document, or a log's own keys."""

    name: str
    kind: CategoryKind = CategoryKind.MEMORY
    document: Any = None
    retention: Retention | None = None
    entries: list[Entry] = field(default_factory=list)
    next_entry_id: int = 0
    updated_at: int = 0
    updated_by: str = ""
    deleted_at: int | None = None
    versions: list[Version] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The canonical document."""
        if self.retention is None:
            return jsonform.canonical(self.document)
        return jsonform.canonical(journal.compose(self.document, self.retention, self.entries))

    @property
    def heading(self) -> Heading:
        """What is known without the document."""
        return Heading(
            self.name,
            self.kind,
            self.versions[-1].id,
            self.updated_at,
            self.updated_by,
            self.next_entry_id,
            self.retention,
            self.deleted_at,
        )

    @property
    def as_category(self) -> Category:
        """The live category with its hash and size."""
        text = self.text
        return Category(
            name=self.name,
            kind=self.kind,
            hash=jsonform.content_hash(text),
            size_bytes=len(text.encode()),
            version=self.versions[-1].id,
            updated_at=self.updated_at,
            updated_by=self.updated_by,
        )


def fold_categories(changes: Iterable[Change]) -> dict[str, CategoryState]:
    """The categories by name after `changes`, in their order; what is about lessons is passed over."""
    states: dict[str, CategoryState] = {}
    versions = 0
    for change in changes:
        if change.kind in _ACTIONS:
            versions += 1
            _version(states.setdefault(change.subject, CategoryState(change.subject)), change, versions)
        elif change.kind is ChangeKind.LOG_APPENDED:
            _append(states[change.subject], change)
    return states


def _version(state: CategoryState, change: Change, number: int) -> None:
    action = _ACTIONS[change.kind]
    text = change.payload.text if change.payload else None
    if action is VersionAction.DELETED:
        text = text or state.text
    text = text or "null"
    previous = state.versions[-1].hash if state.versions else None
    if state.kind is CategoryKind.LOG and state.versions:
        previous = jsonform.content_hash(state.text)
    alive = state.versions and state.deleted_at is None
    if action is VersionAction.DELETED:
        state.deleted_at = change.stamp.ms
        state.entries = []
    else:
        _take(state, jsonform.read(text))
    state.updated_at, state.updated_by = change.stamp.ms, change.stamp.device
    state.versions.append(
        Version(
            id=number,
            action=action,
            kind=state.kind,
            hash=jsonform.content_hash(text),
            previous_hash=previous if alive else None,
            size_bytes=len(text.encode()),
            actor=change.stamp.device,
            reason=change.payload.reason if change.payload else None,
            created_at=change.stamp.ms,
            text=text,
        )
    )


def _take(state: CategoryState, document: Any) -> None:
    state.deleted_at = None
    state.kind = journal.kind_of(document)
    if state.kind is CategoryKind.MEMORY:
        state.document, state.retention, state.entries = document, None, []
        return
    state.document, state.retention, entries = journal.taken_apart(document)
    state.entries = list(entries)
    state.next_entry_id = max([state.next_entry_id, *(entry.id + 1 for entry in entries)])


def _append(state: CategoryState, change: Change) -> None:
    text = change.payload.text if change.payload else None
    data, retention = journal.read_appended(text) if text else ("null", state.retention or Retention(None, None))
    state.retention = retention
    state.entries.append(Entry(state.next_entry_id, journal.timestamp(change.stamp.ms), data))
    state.next_entry_id += 1
    smallest, earliest = journal.oldest_kept(retention, next_id=state.next_entry_id, now_ms=change.stamp.ms)
    state.entries = [entry for entry in state.entries if entry.id >= smallest and not _is_older(entry, earliest)]
    state.updated_at, state.updated_by = change.stamp.ms, change.stamp.device


def _is_older(entry: Entry, earliest: int) -> bool:
    at = journal.milliseconds(entry.ts)
    # an entry whose time cannot be read has no age
    return at is not None and at < earliest
