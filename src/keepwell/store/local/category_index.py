"""What search sees of categories: a row for each value, and a full-text index over the rows."""

from collections.abc import Iterable

import apsw

from keepwell.model import jsonform
from keepwell.model.category import CategoryKind, leaves
from keepwell.store.local.category_reader import CategoryReader
from keepwell.store.local.link import Row


class CategoryIndex(CategoryReader):
    """Keeps the index in step with documents and entries, finds where it is not, and mends it."""

    def _index_document(self, category_id: int, document: object) -> None:
        """Bring the index rows of a document up to date; what stays the same is not touched."""
        wanted = set(leaves(document))
        present = self._link.rows("leaves_of_document", category_id=category_id)
        said = {(row["key_path"], row["value_text"]): row["id"] for row in present}
        self._link.each("drop_leaf", [{"id": number} for leaf, number in said.items() if leaf not in wanted])
        self._add_leaves(category_id, None, sorted(wanted - said.keys()))

    def _add_leaves(self, category_id: int, entry_id: int | None, found: Iterable[tuple[str, str]]) -> None:
        fixed = {"category_id": category_id, "entry_id": entry_id}
        self._link.each("add_leaf", [{**fixed, "key_path": path, "value_text": text} for path, text in found])

    def badly_indexed(self) -> tuple[str, ...]:
        """The live categories whose rows in the search index are not what their documents say."""
        rows = self._link.rows("categories", after="", limit=2**31)
        return tuple(row["name"] for row in rows if self._indexed(row) != self._said(row))

    def _indexed(self, row: Row) -> set[tuple[int | None, str, str]]:
        found = self._link.rows("leaves_of_category", category_id=row["id"])
        return {(leaf["entry_id"], leaf["key_path"], leaf["value_text"]) for leaf in found}

    def _said(self, row: Row) -> set[tuple[int | None, str, str]]:
        if row["kind"] == CategoryKind.MEMORY:
            document = jsonform.read(self._version_text(row["name"], row["content_hash"]))
            return {(None, path, text) for path, text in leaves(document)}
        entries = self._link.rows("entries", category_id=row["id"])
        return {
            (entry["entry_id"], path, text) for entry in entries for path, text in leaves(jsonform.read(entry["data"]))
        }

    def mend_index(self) -> bool:
        """Build the search index anew where it does not agree with what it is about; says whether it had to."""
        mended = False
        for name in self.badly_indexed():
            self._index_again(name)
            mended = True
        try:
            self._link.rows("documents_self_check")
        except apsw.CorruptError:
            self._link.rows("rebuild_document_index")
            mended = True
        if self._link.rows("index_faults"):
            self._link.rows("empty_lesson_index")
            self._link.rows("lesson_index_rows")
            mended = True
        return mended

    def _index_again(self, name: str) -> None:
        row = self._row(name)
        if row is None:
            return
        self._link.rows("drop_leaves", category_id=row["id"])
        for entry_id, path, text in sorted(self._said(row), key=str):
            self._add_leaves(row["id"], entry_id, [(path, text)])
