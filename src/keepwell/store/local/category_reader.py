"""Reading categories: rows of one instant, and what their files say."""

import json
from collections.abc import Callable
from typing import Any, Final

from keepwell.model import journal, jsonform
from keepwell.model.category import (
    Category,
    CategoryKind,
    Compacted,
    Document,
    Heading,
    Retention,
    Version,
    VersionAction,
    check_name,
    name_key,
)
from keepwell.model.errors import Corrupt, Invalid
from keepwell.model.query import DocumentQuery, Passage
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.link import Link, Row
from keepwell.store.port import Edit

_LOOKS: Final = 3
"""How often a file is read again while another process may be giving it its name."""


class CategoryReader:
    """The part of `store.port.Reader` that is about categories."""

    def __init__(self, link: Link, files: CategoryFiles, newest_row: Callable[[str], Row | None]) -> None:
        """`newest_row` tells what is known of a category by now, which may be later than this instant."""
        self._link = link
        self._files = files
        self._newest_row = newest_row

    def _row(self, name: str) -> Row | None:
        return row_of(self._link, name)

    def heading(self, name: str) -> Heading | None:  # noqa: D102 - the port's docstring holds
        row = self._link.row("category", key=name_key(name))
        if row is None:
            return None
        return Heading(
            name=row["name"],
            kind=CategoryKind(row["kind"]),
            version=row["version_id"],
            updated_at=row["updated_at"],
            updated_by=row["updated_by"],
            next_entry_id=row["next_entry_id"],
            retention=Retention(row["max_entries"], row["max_age_days"]) if row["max_entries"] is not None else None,
            deleted_at=row["deleted_at"],
        )

    def categories(self, *, after: str, limit: int) -> tuple[Category, ...]:  # noqa: D102
        return tuple(map(self._category, self._link.rows("categories", after=after, limit=limit)))

    def entry_count(self, name: str) -> int:  # noqa: D102
        row = self._row(name)
        return int(row["entry_count"]) if row else 0

    def _category(self, row: Row, text: str | None = None) -> Category:
        """The category of a row; its hash and size are worked out from `text`, or where the row does not know them."""
        content_hash, size = row["content_hash"], row["size_bytes"]
        if text is None and content_hash is None:
            text = self._log_text(row)
        if text is not None:
            content_hash, size = jsonform.content_hash(text), len(text.encode())
        return Category(
            name=row["name"],
            kind=CategoryKind(row["kind"]),
            hash=content_hash,
            size_bytes=size,
            version=row["version_id"],
            updated_at=row["updated_at"],
            updated_by=row["updated_by"],
        )

    def document(self, name: str) -> Document | None:  # noqa: D102
        row = self._row(name)
        if row is None or row["deleted_at"] is not None:
            return self._stranger(name)
        edited = self._edited_bytes(row)
        if row["kind"] == CategoryKind.LOG:
            # a log is its entries: what a hand has put into its file is told, and kept when the file is written again
            text = self._log_text(row)
            return Document(self._category(row, text), text, edited_outside=edited is not None)
        if edited is None:
            return Document(self._category(row), self._version_text(name, row["content_hash"]))
        text = _canonical(edited, name)
        return Document(self._category(row, text), text, edited_outside=True)

    def _stranger(self, name: str) -> Document | None:
        """What a file says that was put there by hand; None without one, or where it only waits to be removed."""
        data = self.stranger_bytes(name)
        if data is None:
            return None
        text = _canonical(data, name)
        kind = journal.kind_of(jsonform.read(text))
        category = Category(name, kind, jsonform.content_hash(text), len(text.encode()), 0, 0, "")
        return Document(category, text, edited_outside=True)

    def _edited_bytes(self, row: Row) -> bytes | None:
        """What the file holds if somebody else than keepwell wrote it; None if not, or if it is missing."""
        name, expected = row["name"], row["file_hash"]
        for _ in range(_LOOKS):
            data = self._files.read(name)
            if data is None or _hash(data) == expected or self._is_staged(name, expected):
                return None
        return data if data is not None and self._is_current(row) and not _says_the_same(data, expected) else None

    def stranger_bytes(self, name: str) -> bytes | None:
        """What a file holds that no live category owns; None without one, or where it only waits to be removed."""
        row = self._row(name)
        if row and row["deleted_at"] is None:
            return None
        for _ in range(_LOOKS):
            data = self._files.read(name)
            if data is None or self._leaves(name):
                return None
        return data if self._is_current(row, name) else None

    def lacks_file(self, name: str) -> bool:
        """Whether a live category has no file, and none that waits for its name."""
        row = self._row(name)
        if row is None or row["deleted_at"] is not None:
            return False
        for _ in range(_LOOKS):
            if self._files.read(name) is not None or self._is_staged(name, row["file_hash"]):
                return False
        return self._is_current(row)

    def _is_current(self, row: Row | None, name: str = "") -> bool:
        """Whether this instant's row is the newest: if not, what the file holds may be what a later one says."""
        return _state(row) == _state(self._newest_row(row["name"] if row else name))

    def _is_staged(self, name: str, expected: str) -> bool:
        """Whether the committed document still waits for its name."""
        return any(
            staged.name == name and _hash(self._files.read_staged(staged) or b"") == expected
            for staged in self._files.staged()
        )

    def _version_text(self, name: str, content_hash: str) -> str:
        text = self.text_of(name, content_hash)
        if text is None:
            raise Corrupt(
                f"the text of category {name!a} is missing from the database.",
                hint="Run keepwell doctor.",
            )
        return text

    def _log_text(self, row: Row) -> str:
        root = self._log_root(row["name"])
        retention = Retention(row["max_entries"], row["max_age_days"])
        entries = [
            journal.Entry(item["entry_id"], item["ts"], item["data"])
            for item in self._link.rows("entries", category_id=row["id"])
        ]
        return jsonform.canonical(journal.compose(root, retention, entries))

    def _log_root(self, name: str) -> dict[str, Any]:
        """A log's own keys, which its newest version says; the version's entries may be old."""
        for row in self._link.rows("versions", name=name, before=2**62, limit=1):
            text = _payload_text(row["body"])
            if text is not None:
                root, _, _ = journal.taken_apart(jsonform.read(text))
                return root
        return {}

    def versions(self, name: str, *, limit: int, before: int | None) -> tuple[Version, ...]:  # noqa: D102
        rows = self._link.rows("versions", name=name, limit=limit, before=2**62 if before is None else before)
        return tuple(map(_version, rows))

    def version(self, name: str, version_id: int) -> Version | None:  # noqa: D102
        for row in self._link.rows("versions", name=name, limit=1, before=version_id + 1):
            if row["id"] == version_id:
                text = _payload_text(row["body"])
                if text is None and (body := self._link.value("version_text", name=name, hash=row["content_hash"])):
                    text = _payload_text(body)
                return _version(row, text=text)
        return None

    def text_of(self, name: str, content_hash: str) -> str | None:  # noqa: D102
        body = self._link.value("version_text", name=name, hash=content_hash)
        return _payload_text(body) if body is not None else None

    def compactable(self, name: str, *, keep_versions: int) -> Compacted:  # noqa: D102
        row = self._row(name)
        if row is None:
            return Compacted(0, 0)
        versions = self._link.rows("superfluous_versions", category_id=row["id"], keep=keep_versions)
        return Compacted(len(versions), 0)

    def search_documents(self, query: DocumentQuery) -> tuple[Passage, ...]:  # noqa: D102
        if not query.words or not query.kinds:
            return ()
        rows = self._link.rows(
            "search_documents",
            expression=expression(query.words),
            kind=query.kinds[0],
            other_kind=query.kinds[-1],
            category=query.category,
            after=query.period.after,
            before=query.period.before,
            actor=query.actor,
            limit=query.limit,
        )
        return tuple(Passage(**row | {"kind": CategoryKind(row["kind"])}) for row in rows)

    def edits(self, name: str | None = None) -> tuple[Edit, ...]:  # noqa: D102
        live = {row["name"]: row for row in self._link.rows("categories", after="", limit=2**31)}
        wanted = sorted({*live, *self._files.names()} if name is None else {name})
        return tuple(edit for each in wanted if (edit := self._edit(each, live.get(each))))

    def _edit(self, name: str, row: Row | None) -> Edit | None:
        committed = row["file_hash"] if row else None
        try:
            check_name(name)
            data = self._edited_bytes(row) if row else self.stranger_bytes(name)
            text = None if data is None else _canonical(data, name)
        except (Invalid, Corrupt) as error:
            return Edit(ascii(name), "", committed, None, error.sentence)
        if data is None:
            return None
        return Edit(name, _hash(data), committed, text)

    def _leaves(self, name: str) -> bool:
        """Whether the file of a deleted category only waits to be removed."""
        return any(staged.deletes and staged.name == name for staged in self._files.staged())

    def unsettled(self) -> tuple[str, ...]:
        """The logs whose files lack entries."""
        return tuple(row["name"] for row in self._link.rows("unsettled"))

    def dirty(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(row["category_name"] for row in self._link.rows("dirty"))


def row_of(link: Link, name: str) -> Row | None:
    """The row of a category, deleted ones included; None where there is none of exactly this name."""
    row = link.row("category", key=name_key(name))
    return row if row and row["name"] == name else None


def expression(words: tuple[str, ...]) -> str:
    """An FTS5 expression that asks for any of the words, each quoted so that nothing in it is an operator."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


def _version(row: Row, *, text: str | None = None) -> Version:
    body = json.loads(row["body"]) if row["body"] is not None else {}
    return Version(
        id=row["id"],
        action=VersionAction(row["action"]),
        kind=CategoryKind(row["kind"]),
        hash=row["content_hash"],
        previous_hash=row["previous_hash"],
        size_bytes=row["size_bytes"],
        actor=row["actor"],
        reason=body.get("reason"),
        created_at=row["created_at"],
        text=text,
    )


def _state(row: Row | None) -> tuple[object, ...]:
    """What differs between any two states of a category that make a difference to its file."""
    return () if row is None else (row["version_id"], row["settled_entry_id"], row["file_hash"], row["deleted_at"])


def _payload_text(body: str | None) -> str | None:
    text = json.loads(body)["text"] if body is not None else None
    return None if text is None else str(text)


def _hash(data: bytes) -> str:
    # the canonical text's hash is that of its bytes
    return jsonform.content_hash_of(data)


def _canonical(data: bytes, name: str) -> str:
    try:
        return jsonform.canonical(jsonform.parse(data.decode()))
    except (UnicodeDecodeError, Invalid) as error:
        told = error.sentence if isinstance(error, Invalid) else "it is not in UTF-8."
        raise Corrupt(
            f"the file of category {name!a} was edited outside keepwell and cannot be read: {told}",
            hint="Mend it or move it away; the next write makes it again from the database.",
        ) from None


def _says_the_same(data: bytes, expected: str) -> bool:
    """Whether a file holds the document in another layout only."""
    try:
        text = jsonform.canonical(jsonform.parse(data.decode()))
    except (UnicodeDecodeError, Invalid):
        return False
    return jsonform.content_hash(text) == expected
