"""Writing categories: rows and staged files in one transaction, then the files get their names.

The database decides: a document is committed with its rows, which carry its whole text. The file follows, at once or,
after a crash, under the next write lock.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from keepwell.model import journal, jsonform
from keepwell.model.category import UNBOUNDED, CategoryKind, Compacted, Retention, VersionAction, leaves, name_key
from keepwell.model.change import Change, ChangeKind, Draft, Stamp
from keepwell.model.errors import Conflict, NotFound
from keepwell.model.journal import Entry
from keepwell.store.local.category_files import CategoryFiles, Staged, backup_name
from keepwell.store.local.category_index import CategoryIndex
from keepwell.store.local.link import Link, Row

_log: Final = logging.getLogger(__name__)

_SETTLE_SHARE: Final = 4
"""A log's file is written again once it lacks a quarter of the entries: so an append costs the same at any length."""

_SETTLE_AT_LEAST: Final = 256

_ACTIONS: Final = {
    ChangeKind.CATEGORY_WRITTEN: VersionAction.WRITTEN,
    ChangeKind.CATEGORY_ADOPTED: VersionAction.ADOPTED,
    ChangeKind.CATEGORY_RESTORED: VersionAction.RESTORED,
}


@dataclass(frozen=True, slots=True)
class _State:
    """What a row says of a document."""

    kind: CategoryKind
    hash: str
    size: int
    retention: Retention = UNBOUNDED
    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, document: Any, text: str) -> Self:
        """The state of a document and its canonical text."""
        if journal.kind_of(document) is CategoryKind.MEMORY:
            return cls(CategoryKind.MEMORY, *_measured(text))
        _, retention, entries = journal.taken_apart(document)
        return cls(CategoryKind.LOG, *_measured(text), retention, entries)

    def values(self) -> Row:
        """The columns."""
        return {
            "kind": self.kind.value,
            "hash": self.hash,
            "size": self.size,
            "next_entry_id": max((entry.id + 1 for entry in self.entries), default=0),
            "max_entries": self.retention.max_entries,
            "max_age_days": self.retention.max_age_days,
        }


def _measured(text: str) -> tuple[str, int]:
    return jsonform.content_hash(text), len(text.encode())


def _is_far_behind(missing: int, count: int) -> bool:
    """Whether the file of a log lacks so many of its entries that it is worth writing again."""
    return missing >= _SETTLE_AT_LEAST and missing >= count // _SETTLE_SHARE


def _is_live(row: Row) -> bool:
    return row["deleted_at"] is None


class CategoryWriter(CategoryIndex):
    """The part of `store.port.Writer` that is about categories. `finish` follows the commit, `abandon` its absence."""

    def __init__(
        self,
        link: Link,
        files: CategoryFiles,
        newest_row: Callable[[str], Row | None],
        *,
        now_ms: Callable[[], int],
        max_versions: int,
        transaction: str,
    ) -> None:
        super().__init__(link, files, newest_row)
        self._now_ms = now_ms
        self._max_versions = max_versions
        self._transaction = transaction
        self._staged: list[tuple[Staged, str | None]] = []
        self._to_erase: list[str] = []
        self._ready = False
        self.leaves_logs_unsettled = False

    def write_category(self, draft: Draft | Change, seq: int, stamp: Stamp) -> int:
        """Let rows, index and file follow a change of a category; gives the version's or the entry's id."""
        self.settle_staged()
        text = draft.payload.text if draft.payload else None
        match draft.kind:
            case ChangeKind.LOG_APPENDED:
                return self._append(draft.subject, text, stamp)
            case ChangeKind.CATEGORY_DELETED:
                return self._delete(draft.subject, text, seq, stamp)
            case ChangeKind.CATEGORY_FORGOTTEN:
                return self._forget_category(draft.subject, text, seq, stamp)
            case _ if text is None:
                raise Conflict("the document of this change was not kept.")
            case _:
                return self._put(draft.subject, text, _ACTIONS[draft.kind], seq, stamp)

    def settle_staged(self) -> None:
        """Decide what earlier transactions staged: what is committed gets its name, the rest is forgotten."""
        if self._ready:
            return
        self._ready = True
        for staged in self._files.staged():
            row = self._link.row("category", key=name_key(staged.name))
            if row and row["name"] == staged.name and self._is_committed(staged, row):
                self._files.promote(staged, predecessor=self._predecessor(staged, row))
            else:
                self._files.discard(staged)

    def _predecessor(self, staged: Staged, row: Row) -> str | None:
        """The backup that the present file becomes; what was erased becomes none, and loses those that it has."""
        if not row["file_hash"]:
            self._files.erase_backups(staged.name)
            return None
        version, at = self._previous_version(row), row["updated_at"]
        return backup_name(staged.name, version=version, at_ms=at, deleted=staged.deletes)

    def _is_committed(self, staged: Staged, row: Row) -> bool:
        if staged.deletes:
            return row["deleted_at"] is not None
        data = self._files.read_staged(staged)
        return row["deleted_at"] is None and data is not None and jsonform.content_hash_of(data) == row["file_hash"]

    def _previous_version(self, row: Row) -> int:
        versions = self._link.rows("versions", name=row["name"], before=row["version_id"], limit=1)
        return int(versions[0]["id"]) if versions else 0

    def _put(self, name: str, text: str, action: VersionAction, seq: int, stamp: Stamp) -> int:
        previous = self._link.row("category", key=name_key(name))
        if previous and previous["name"] != name:
            raise Conflict(f"a category {previous['name']!a} exists, whose name differs in case or form only.")
        document = jsonform.read(text)
        state = _State.of(document, text)
        if previous and self._is_late(name, seq, stamp):
            # it is a version of the past: the newest one stays
            version = self._add_version(previous["id"], None, action, state, seq, stamp)
            self._prune_versions(previous["id"], keep=self._max_versions)
            return version
        replaced = self._category(previous).hash if previous and _is_live(previous) else None
        values = {**state.values(), "at": stamp.ms, "by": stamp.device}
        if previous:
            category_id: int = previous["id"]
            self._link.rows("replace_category", id=category_id, **values)
        else:
            category_id = self._link.value("add_category", name=name, key=name_key(name), **values)
        self._index_document(category_id, document if state.kind is CategoryKind.MEMORY else {})
        self._replace_entries(category_id, state.entries, stamp.device)
        version = self._add_newest(category_id, replaced, action, state, seq, stamp)
        self._stage(name, text, previous, stamp)
        self._mark_dirty(name, "upsert", state.hash, stamp)
        return version

    def _add_newest(
        self, category_id: int, replaced: str | None, action: VersionAction, state: "_State", seq: int, stamp: Stamp
    ) -> int:
        version = self._add_version(category_id, replaced, action, state, seq, stamp)
        self._link.rows("set_category_version", id=category_id, version=version)
        self._prune_versions(category_id, keep=self._max_versions)
        return version

    def _add_version(
        self, category_id: int, replaced: str | None, action: VersionAction, state: "_State", seq: int, stamp: Stamp
    ) -> int:
        version: int = self._link.value(
            "add_version",
            category_id=category_id,
            action=action.value,
            kind=state.kind.value,
            hash=state.hash,
            previous_hash=replaced,
            size=state.size,
            actor=stamp.device,
            at=stamp.ms,
            seq=seq,
        )
        return version

    def compact(self, name: str, *, keep_versions: int) -> Compacted:  # noqa: D102 - the port's docstring holds
        row = self._row(name)
        if row is None:
            return Compacted(0, 0)
        dropped = self._prune_versions(row["id"], keep=keep_versions)
        if row["max_entries"] is None or not _is_live(row):
            return Compacted(dropped, 0)
        retention = Retention(row["max_entries"], row["max_age_days"])
        entries = self._prune_entries(row["id"], retention, next_id=row["next_entry_id"], now_ms=self._now_ms())
        if entries:
            self.settle(name)
        return Compacted(dropped, entries)

    def _prune_versions(self, category_id: int, *, keep: int) -> int:
        superfluous = self._link.rows("superfluous_versions", category_id=category_id, keep=keep)
        for row in superfluous:
            self._link.rows("drop_version", id=row["id"])
            self._link.rows("drop_payload", seq=row["change_seq"])
        return len(superfluous)

    def _stage(self, name: str, text: str, previous: Row | None, stamp: Stamp) -> None:
        staged = self._files.stage(f"{self._transaction}-{len(self._staged)}", name, text)
        kept = None
        if previous and _is_live(previous):
            kept = backup_name(name, version=previous["version_id"], at_ms=stamp.ms)
        self._staged.append((staged, kept))

    def _is_late(self, name: str, seq: int, stamp: Stamp) -> bool:
        """Whether a change that came from elsewhere is older than what the category holds."""
        newest = self._link.row("newest_category_stamp", name=name, seq=seq)
        return newest is not None and stamp < Stamp(**newest)

    def _delete(self, name: str, text: str | None, seq: int, stamp: Stamp) -> int:
        row = self._live(name)
        if self._is_late(name, seq, stamp):
            raise Conflict("the category was written after it was deleted.")
        kind = CategoryKind(row["kind"])
        # a log's last document comes with its deletion, for it has no version of its own
        state = _State(kind, row["content_hash"], row["size_bytes"]) if text is None else _State(kind, *_measured(text))
        self._link.rows("delete_category", id=row["id"], at=stamp.ms, by=stamp.device, hash=state.hash, size=state.size)
        self._drop_entries(row["id"], self._link.rows("entries", category_id=row["id"]))
        self._index_document(row["id"], {})
        version = self._add_newest(row["id"], state.hash, VersionAction.DELETED, state, seq, stamp)
        staged = self._files.stage_deletion(f"{self._transaction}-{len(self._staged)}", name)
        self._staged.append((staged, backup_name(name, version=row["version_id"], at_ms=stamp.ms, deleted=True)))
        self._mark_dirty(name, "delete", None, stamp)
        return version

    def _forget_category(self, name: str, text: str | None, seq: int, stamp: Stamp) -> int:
        """Erase a category's documents, entries and versions for good.

        Its name and its envelopes stay, and with `text` the number that its next entry would get.
        """
        self._link.rows("add_erasure", subject=name, seq=seq, at=stamp.ms)
        self._link.rows("erase_payloads", subject=name, **asdict(stamp))
        row = self._row(name) or self._forgotten_row(name, stamp)
        self._link.rows("keep_entry_numbers", id=row["id"], next_entry_id=int(text or 0))
        self._link.rows("erase_versions", category_id=row["id"], subject=name, **asdict(stamp))
        if self._is_late(name, seq, stamp):
            # it was written anew after it was forgotten elsewhere
            return int(row["id"])
        self._drop_entries(row["id"], self._link.rows("entries", category_id=row["id"]))
        self._index_document(row["id"], {})
        self._link.rows("erase_category", id=row["id"], at=stamp.ms, by=stamp.device)
        self._mark_dirty(name, "delete", None, stamp)
        self._staged.append((self._files.stage_deletion(f"{self._transaction}-{len(self._staged)}", name), None))
        self._to_erase.append(name)
        return int(row["id"])

    def _forgotten_row(self, name: str, stamp: Stamp) -> Row:
        """The row of a category of which only the forgetting is known."""
        values = _State(CategoryKind.MEMORY, "", 0).values() | {"at": stamp.ms, "by": stamp.device}
        self._link.value("add_category", name=name, key=name_key(name), **values)
        return self._row(name) or {}

    def _live(self, name: str) -> Row:
        row = self._row(name)
        if row is None or not _is_live(row):
            raise NotFound(f"there is no category {name!a}.")
        return row

    def _append(self, name: str, text: str | None, stamp: Stamp) -> int:
        row = self._live(name)
        if text is None or row["kind"] != CategoryKind.LOG:
            raise Conflict("the entry was not kept, or the category is no log.")
        data, retention = journal.read_appended(text)
        entry_id: int = row["next_entry_id"]
        self._add_entries(row["id"], [Entry(entry_id, journal.timestamp(stamp.ms), data)], stamp.device)
        self._link.rows(
            "grow_category",
            id=row["id"],
            at=stamp.ms,
            by=stamp.device,
            max_entries=retention.max_entries,
            max_age_days=retention.max_age_days,
        )
        self._prune_entries(row["id"], retention, next_id=entry_id + 1, now_ms=stamp.ms)
        self._mark_dirty(name, "upsert", None, stamp)
        if _is_far_behind(entry_id + 1 - row["settled_entry_id"], row["entry_count"]):
            self.settle(name)
        else:
            self.leaves_logs_unsettled = True
        return entry_id

    def _add_entries(self, category_id: int, entries: Sequence[Entry], device: str) -> None:
        self._link.each(
            "add_entry",
            [
                {
                    "category_id": category_id,
                    "entry_id": entry.id,
                    "ts": entry.ts,
                    "at": journal.milliseconds(entry.ts),
                    "data": entry.text,
                    "by": device,
                }
                for entry in entries
            ],
        )
        for entry in entries:
            self._add_leaves(category_id, entry.id, leaves(jsonform.read(entry.text)))
        self._link.rows("count_entries", id=category_id, more=len(entries))

    def _prune_entries(self, category_id: int, retention: Retention, *, next_id: int, now_ms: int) -> int:
        smallest, earliest = journal.oldest_kept(retention, next_id=next_id, now_ms=now_ms)
        old = self._link.rows("entries_to_drop", category_id=category_id, smallest=smallest, earliest=earliest)
        self._drop_entries(category_id, old)
        return len(old)

    def _drop_entries(self, category_id: int, rows: Sequence[Row]) -> None:
        named = [{"category_id": category_id, "entry_id": row["entry_id"]} for row in rows]
        self._link.each("drop_leaves_of_entry", named)
        self._link.each("drop_entry", named)
        self._link.rows("count_entries", id=category_id, more=-len(rows))

    def _replace_entries(self, category_id: int, entries: tuple[Entry, ...], device: str) -> None:
        self._drop_entries(category_id, self._link.rows("entries", category_id=category_id))
        self._add_entries(category_id, entries, device)

    def _mark_dirty(self, name: str, operation: str, content_hash: str | None, stamp: Stamp) -> None:
        self._link.rows("mark_dirty", name=name, operation=operation, hash=content_hash, at=stamp.ms)

    def settle(self, name: str) -> None:
        """Let the file of a log hold all its entries again."""
        self.settle_staged()
        row = self._live(name)
        text = self._log_text(row)
        size = len(text.encode())
        edited = self._edited_bytes(row)
        self._link.rows("settle_category", id=row["id"], hash=jsonform.content_hash(text), size=size)
        staged = self._files.stage(f"{self._transaction}-{len(self._staged)}", name, text)
        # what somebody wrote into the file by hand is kept, the log's own former states are not: it only grows
        kept = backup_name(name, version=row["next_entry_id"], at_ms=row["updated_at"]) if edited else None
        self._staged.append((staged, kept))

    def rewrite_file(self, name: str) -> None:
        """Write the file of a live category again from the database."""
        row = self._live(name)
        if row["kind"] == CategoryKind.LOG:
            self.settle(name)
            return
        self.settle_staged()
        text = self._version_text(name, row["content_hash"])
        self._staged.append((self._files.stage(f"{self._transaction}-{len(self._staged)}", name, text), None))

    def finish(self) -> None:
        """After the commit: give the staged files their names. What fails now is done under the next lock."""
        try:
            for staged, kept in self._staged:
                self._files.promote(staged, predecessor=kept)
            for name in self._to_erase:
                self._files.erase_backups(name)
        except OSError as error:
            _log.warning("a category's file follows later: %s", error)

    def abandon(self) -> None:
        """After a failure: forget the staged files. What cannot be removed now is forgotten under the next lock."""
        for staged, _ in self._staged:
            try:
                self._files.discard(staged)
            except OSError as error:
                _log.warning("a staged file stays for now: %s", error)
