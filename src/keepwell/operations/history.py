"""What categories were: their versions, what changed, and bringing a version back."""

from dataclasses import replace
from typing import Any

from keepwell.model import journal, jsonform
from keepwell.model.category import CategoryKind, Document, Heading, Version
from keepwell.model.change import ChangeKind
from keepwell.model.errors import Conflict, Invalid, NotFound
from keepwell.model.jsondiff import difference
from keepwell.model.jsonform import compact as compact_json
from keepwell.operations.categories import check_expected, present, put, require_hash
from keepwell.operations.category_replies import Changes, Delta, Saved, VersionRow, Versions
from keepwell.operations.library import Library
from keepwell.operations.replies import STORED_DATA
from keepwell.store.port import Reader


def versions(
    library: Library, *, category: str, limit: int, before: int | None, version: int | None, against: int | None
) -> Versions:
    """A category's versions, newest first; with `version` that one's document, or what changed since another."""
    if against is not None and version is None:
        raise Invalid("against needs version: the newer of the two that are compared.")
    with library.store.reading() as reader:
        heading = _heading(reader, category)
        if version is not None:
            return _one_version(library, reader, heading, version, against)
        found = reader.versions(category, limit=limit + 1, before=before)
    reply = Versions(
        STORED_DATA,
        category,
        heading.kind,
        heading.deleted_at,
        tuple(map(_row, found[:limit])),
        found[limit - 1].id if len(found) > limit else None,
    )
    while len(reply.versions) > 1 and not library.caller.fits(reply):
        kept = reply.versions[: len(reply.versions) // 2]
        reply = replace(reply, versions=kept, next=kept[-1].version, truncated=True)
    return reply


def _heading(reader: Reader, category: str) -> Heading:
    heading = reader.heading(category)
    if heading is None or heading.name != category:
        raise NotFound(f"there never was a category {category!a}.", hint="memory_list gives the names.")
    return heading


def _row(version: Version) -> VersionRow:
    return VersionRow(
        version.id,
        version.action,
        version.hash,
        version.previous_hash,
        version.size_bytes,
        version.actor,
        version.reason,
        version.created_at,
    )


def _one_version(library: Library, reader: Reader, heading: Heading, number: int, against: int | None) -> Versions:
    version = _version(reader, heading.name, number, parameter="version")
    reply = Versions(STORED_DATA, heading.name, version.kind, heading.deleted_at, (_row(version),))
    data = jsonform.read(version.text or "null")
    if against is not None:
        older = _version(reader, heading.name, against, parameter="against")
        changes = _changes(jsonform.read(older.text or "null"), data)
        full = replace(reply, changes=changes)
    else:
        full = replace(reply, data=data)
    if library.caller.fits(full):
        return full
    return replace(reply, truncated=True)


def _version(reader: Reader, category: str, number: int, *, parameter: str) -> Version:
    version = reader.version(category, number)
    if version is None:
        raise NotFound(
            f"{parameter} {number}: category {category!a} has no such version.", hint="memory_history lists them."
        )
    if version.text is None:
        raise NotFound(f"{parameter} {number}: the text of this version was not kept.")
    return version


def _changes(old: Any, new: Any) -> Changes:
    found = difference(old, new)
    return Changes(found.added, found.removed, found.changed)


def revert(library: Library, *, category: str, version: int, expected_hash: str | None) -> Saved:
    """Make an older version's document the newest one, also of a category that was deleted."""
    library.access.require(category)
    check_expected(expected_hash)
    with library.store.writing() as writer:
        heading = _heading(writer, category)
        found = _version(writer, category, version, parameter="version")
        before = present(writer, category)
        require_hash(before, expected_hash)
        if heading.is_live and CategoryKind.LOG in (heading.kind, found.kind):
            raise Conflict("a log only grows: no older state of it can be brought back.", hint="Delete it first.")
        text = found.text or "null"
        reason = f"version {version} brought back"
        kind = ChangeKind.CATEGORY_RESTORED
        return put(library, writer, category, text, before, reason=reason, outcome="restored", kind=kind)


def delta(library: Library, *, category: str, since_hash: str) -> Delta:
    """What changed since a hash; the whole document where that hash is not known, or the changes would be longer."""
    with library.store.reading() as reader:
        document = present(reader, category)
        if document is None:
            return _deleted(_heading(reader, category))
        facts = document.category
        reply = Delta(
            STORED_DATA,
            category,
            "unchanged",
            facts.hash,
            facts.updated_at or None,
            facts.updated_by or None,
            edited_outside=document.edited_outside or None,
        )
        if facts.hash == since_hash:
            return reply
        changes = _changes_since(reader, document, since_hash)
    full = replace(reply, status="replaced", data=document.data)
    if changes is not None:
        small = replace(reply, status="changed", changes=changes)
        if _length(changes) < len(document.text.encode()):
            full = small
    if library.caller.fits(full):
        return full
    return replace(reply, status="replaced", note="It is too long for one answer: use memory_read with fields.")


def _deleted(heading: Heading) -> Delta:
    return Delta(
        STORED_DATA,
        heading.name,
        "deleted",
        updated_by=heading.updated_by,
        deleted_at=heading.deleted_at,
        note="memory_history shows its versions.",
    )


def _changes_since(reader: Reader, document: Document, since_hash: str) -> Changes | None:
    if document.category.kind is CategoryKind.LOG:
        seen = journal.entries_at(document.data, since_hash)
        if seen is not None:
            entries = document.data["entries"]
            return Changes({f"/entries/{index}": entries[index] for index in range(seen, len(entries))}, (), {})
    text = reader.text_of(document.category.name, since_hash)
    return None if text is None else _changes(jsonform.read(text), document.data)


def _length(changes: Changes) -> int:
    return len(compact_json([changes.added, changes.removed, changes.changed]).encode())
