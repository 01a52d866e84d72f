"""What the log of changes says about categories: their documents, their entries and their versions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from keepwell.model import journal, jsonform
from keepwell.model.category import Category, CategoryKind, Heading, Retention, Version, VersionAction
from keepwell.model.change import FIRST_STAMP, Change, ChangeKind, Stamp
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
    stamp: Stamp = FIRST_STAMP
    deleted_at: int | None = None
    versions: list[Version] = field(default_factory=list)

    @property
    def is_open_log(self) -> bool:
        """Whether entries can be added."""
        return self.kind is CategoryKind.LOG and self.deleted_at is None

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
            self.versions[-1].id if self.versions else 0,
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
    for change in changes:
        state = states.get(change.subject)
        if change.kind in _ACTIONS and _makes_version(state, change):
            _version(states.setdefault(change.subject, CategoryState(change.subject)), change)
        elif change.kind is ChangeKind.CATEGORY_FORGOTTEN:
            _forget(states.setdefault(change.subject, CategoryState(change.subject)), change)
        elif change.kind is ChangeKind.LOG_APPENDED and state and state.is_open_log:
            _append(state, change)
    return states


def _makes_version(state: CategoryState | None, change: Change) -> bool:
    """A document that was not kept makes none, nor a deletion of what is not there or was written later."""
    if change.kind is ChangeKind.CATEGORY_DELETED:
        return state is not None and state.deleted_at is None and change.stamp >= state.stamp
    return change.payload is not None


def _version(state: CategoryState, change: Change) -> None:
    action = _ACTIONS[change.kind]
    is_late = change.stamp < state.stamp
    text = (change.payload.text if change.payload else None) or state.text
    replaced = state.versions and state.deleted_at is None and not is_late
    previous = jsonform.content_hash(state.text) if replaced else None
    if not is_late:
        _become(state, change, action, text)
    state.versions.append(
        Version(
            id=change.seq,
            action=action,
            kind=journal.kind_of(jsonform.read(text)),
            hash=jsonform.content_hash(text),
            previous_hash=previous,
            size_bytes=len(text.encode()),
            actor=change.stamp.device,
            reason=change.payload.reason if change.payload else None,
            created_at=change.stamp.ms,
            text=text,
        )
    )


def _become(state: CategoryState, change: Change, action: VersionAction, text: str) -> None:
    if action is VersionAction.DELETED:
        state.deleted_at = change.stamp.ms
        state.entries = []
    else:
        _take(state, jsonform.read(text))
    state.stamp = change.stamp
    state.updated_at, state.updated_by = change.stamp.ms, change.stamp.device


def _take(state: CategoryState, document: Any) -> None:
    state.deleted_at = None
    state.kind = journal.kind_of(document)
    if state.kind is CategoryKind.MEMORY:
        state.document, state.retention, state.entries = document, None, []
        return
    state.document, state.retention, entries = journal.taken_apart(document)
    state.entries = list(entries)
    state.next_entry_id = max([state.next_entry_id, *(entry.id + 1 for entry in entries)])


def _forget(state: CategoryState, change: Change) -> None:
    """Only the name is left, and the number that a next entry would get."""
    state.kind, state.document, state.retention = CategoryKind.MEMORY, None, None
    state.entries, state.versions = [], []
    state.deleted_at = state.updated_at = change.stamp.ms
    state.updated_by, state.stamp = change.stamp.device, change.stamp
    told = change.payload.text if change.payload else None
    state.next_entry_id = max(state.next_entry_id, int(told or 0))


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
