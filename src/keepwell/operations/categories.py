"""Categories: reading, writing, appending, deleting and listing."""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from keepwell.model import journal, jsonform
from keepwell.model.category import ABSENT, CategoryKind, Document, Heading, checked_document, merged
from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Conflict, Internal, Invalid, NotFound
from keepwell.model.journal import ENTRY_BYTES
from keepwell.model.scope import GLOBAL
from keepwell.operations.category_replies import Appended, CategoryRow, Listing, Read, Removed, Saved
from keepwell.operations.library import Library
from keepwell.operations.replies import STORED_DATA
from keepwell.store.port import Reader, Writer

EVERY_FIELD: Final = "*"
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_NAMES_TOLD: Final = 10
_KEYS_TOLD: Final = 20
_KEY_CHARACTERS: Final = 60
_EDIT_KEPT: Final = "Its file had been edited outside keepwell; that edit was taken in as a version of its own first."


def read(library: Library, *, category: str, fields: str | None, entries: int | None) -> Read:
    """A category's document, whole or the asked top-level keys; of a log perhaps only the newest entries."""
    with library.store.reading() as reader:
        document = present(reader, category) or _missing(reader, category)
    data = narrowed(document.data, fields, entries)
    facts = document.category
    reply = Read(
        STORED_DATA,
        facts.name,
        facts.kind,
        facts.hash,
        facts.version,
        facts.updated_at or None,
        facts.updated_by or None,
        facts.size_bytes,
        data,
        edited_outside=document.edited_outside or None,
    )
    return _fitted(library, reply)


def present(reader: Reader, category: str) -> Document | None:
    """The document of that name; `Conflict` where a name that differs by case or form only is taken."""
    heading = reader.heading(category)
    if heading and heading.name != category:
        if heading.is_live:
            raise Conflict(
                f"the category is called {heading.name!a}: two names may not differ by case or form only.",
                hint=f"Use {heading.name!a}.",
            )
        return None
    return reader.document(category)


def _missing(reader: Reader, category: str) -> Document:
    heading = reader.heading(category)
    if heading and heading.name == category:
        raise NotFound(
            f"category {category!a} was deleted.", hint="memory_history shows its versions, which can be brought back."
        )
    names = [other.name for other in reader.categories(after="", limit=_NAMES_TOLD + 1)]
    more = ", and more" if len(names) > _NAMES_TOLD else ""
    told = f"There are {', '.join(names[:_NAMES_TOLD])}{more}." if names else "There are no categories yet."
    raise NotFound(f"there is no category {category!a}.", hint=told)


def narrowed(data: Any, fields: str | None, entries: int | None) -> Any:
    """The document with the asked top-level keys only, and of a log the newest entries; what is no object stays."""
    if not isinstance(data, dict):
        return data
    if entries is not None and journal.kind_of(data) is CategoryKind.LOG:
        data = {**data, "entries": data["entries"][-entries:]}
    wanted = [key.strip() for key in fields.split(",")] if fields is not None else [EVERY_FIELD]
    return data if wanted == [EVERY_FIELD] else {key: data[key] for key in wanted if key in data}


def _fitted(library: Library, reply: Read) -> Read:
    """The reply without what makes it too long: of a log the oldest entries, else the longest keys."""
    if library.caller.fits(reply):
        return reply
    shorter: Callable[[int], Read]
    if not isinstance(reply.data, dict):
        return replace(reply, data=None, truncated=True, omitted=("the document",))
    if journal.kind_of(reply.data) is CategoryKind.LOG:
        count, shorter = len(reply.data["entries"]), partial(_without_oldest, reply)
    else:
        longest = sorted(reply.data, key=lambda key: (-len(jsonform.compact({key: reply.data[key]})), key))
        count, shorter = len(longest), partial(_without_keys, reply, longest)
    # the fewest that must go: each look measures the whole reply, so not one by one
    dropped = bisect_left(range(1, count), 1, key=lambda number: int(library.caller.fits(shorter(number)))) + 1
    fitted = shorter(min(dropped, count))
    return fitted if library.caller.fits(fitted) else replace(reply, data=None, truncated=True, omitted=("all of it",))


def _without_oldest(reply: Read, dropped: int) -> Read:
    kept = reply.data["entries"][dropped:]
    told = f"entries before id {kept[0]['id']}" if kept else "entries of this log"
    return replace(reply, data={**reply.data, "entries": kept}, truncated=True, omitted=(told,))


def _without_keys(reply: Read, longest: Sequence[str], dropped: int) -> Read:
    gone = set(longest[:dropped])
    told = [key if len(key) <= _KEY_CHARACTERS else key[:_KEY_CHARACTERS] + "\u2026" for key in longest[:dropped]]
    more = [f"{dropped - _KEYS_TOLD:,} more"] if dropped > _KEYS_TOLD else []
    kept = {key: value for key, value in reply.data.items() if key not in gone}
    return replace(reply, data=kept, truncated=True, omitted=(*told[:_KEYS_TOLD], *more))


def write(
    library: Library,
    *,
    category: str,
    data: Mapping[str, Any],
    merge: bool,
    reason: str | None,
    expected_hash: str | None,
) -> Saved:
    """Replace a document, or set some of its top-level keys; the same document again makes no new version."""
    library.access.require(category)
    check_expected(expected_hash)
    # before the lock is taken: a document that cannot be kept must not make others wait
    text = checked_document(data)
    with library.store.writing() as writer:
        before = present(writer, category)
        require_hash(before, expected_hash)
        if before and before.category.kind is CategoryKind.LOG:
            _require_taken_in(before)
            raise Conflict(f"category {category!a} is a log, which only grows.", hint="Use memory_append.")
        if merge:
            text = checked_document(merged(before.data if before else {}, jsonform.read(text)))
        if journal.kind_of(jsonform.read(text)) is CategoryKind.LOG:
            raise Invalid("data looks like a log, which memory_write does not make.", hint="Use memory_append.")
        return put(library, writer, category, text, before, reason=reason, outcome="merged" if merge else "replaced")


def put(
    library: Library,
    writer: Writer,
    category: str,
    text: str,
    before: Document | None,
    *,
    reason: str | None,
    outcome: str,
    kind: ChangeKind = ChangeKind.CATEGORY_WRITTEN,
) -> Saved:
    """Make a document a category's newest version, unless it is that already; an edit from outside is kept first."""
    note = None
    previous = before.category.hash if before else None
    if before and before.text == text and not before.edited_outside:
        outcome = "unchanged"
    else:
        if before and before.edited_outside and before.text != text:
            note = keep_edit(library, writer, before)
        writer.append(draft(library, kind, category, text=text, reason=reason))
    heading = writer.heading(category)
    if heading is None:
        raise Internal("the category is not there after it was written.")
    return Saved(
        category,
        heading.kind,
        outcome if before or kind is ChangeKind.CATEGORY_RESTORED else "created",
        jsonform.content_hash(text),
        previous,
        heading.version,
        heading.updated_at,
        len(text.encode()),
        note,
    )


def keep_edit(library: Library, writer: Writer, document: Document) -> str:
    """Take what a hand has written into a file in as a version, before it is replaced; says so."""
    reason = "edited outside keepwell"
    adopted = draft(library, ChangeKind.CATEGORY_ADOPTED, document.category.name, text=document.text, reason=reason)
    writer.append(adopted)
    return _EDIT_KEPT


def draft(
    library: Library, kind: ChangeKind, category: str, *, text: str | None = None, reason: str | None = None
) -> Draft:
    """A change of a category by this caller."""
    return Draft(kind, category, None, library.caller.author, Payload(text=text, reason=reason))


def check_expected(expected: str | None) -> None:
    """Raise `Invalid` for what can be no hash of a document."""
    if expected is not None and expected != ABSENT and not _HASH.fullmatch(expected):
        raise Invalid(f'expected_hash must be 64 hexadecimal digits, or "{ABSENT}" for no such category.')


def require_hash(document: Document | None, expected: str | None) -> None:
    """Raise `Conflict` unless the category is as the caller believes it to be."""
    now = document.category.hash if document else ABSENT
    if expected is not None and expected != now:
        told = f"has the hash {now}" if document else "does not exist"
        raise Conflict(
            f"the category {told}, not {expected}; nothing was changed.",
            hint="Read it again, and repeat the change on what it says now.",
        )


def append(
    library: Library,
    *,
    category: str,
    data: Mapping[str, Any],
    max_entries: int | None,
    max_age_days: int | None,
    operation_id: str | None,
) -> Appended:
    """Add an entry to a log, which is made where there is none; what its bounds do not keep is dropped."""
    library.access.require(category)
    text = _checked_entry(data)

    def act(writer: Writer) -> Appended:
        heading = _log_to_grow(library, writer, category)
        retention = journal.effective(heading.retention, max_entries=max_entries, max_age_days=max_age_days)
        change = draft(library, ChangeKind.LOG_APPENDED, category, text=journal.appended(text, retention))
        number = writer.append(change)
        after = writer.heading(category)
        at = after.updated_at if after else 0
        total = writer.entry_count(category)
        return Appended(category, CategoryKind.LOG.value, number, journal.timestamp(at), total)

    return library.once(
        "memory_append",
        scope=GLOBAL,
        operation_id=operation_id,
        arguments={"category": category, "data": text, "max_entries": max_entries, "max_age_days": max_age_days},
        answer=Appended,
        act=act,
    )


def _checked_entry(data: Mapping[str, Any]) -> str:
    # as deep as it will stand in the log's document
    checked_document({"entries": [{"data": data}]})
    text = checked_document(data)
    size = len(text.encode())
    if size > ENTRY_BYTES:
        raise Invalid(f"data is {size:,} bytes in canonical JSON; the limit of an entry is {ENTRY_BYTES:,} bytes.")
    return text


def _log_to_grow(library: Library, writer: Writer, category: str) -> Heading:
    """The log's heading; an empty log is made where there is no category of that name."""
    heading = writer.heading(category)
    if heading is None or not heading.is_live or heading.name != category:
        if stranger := present(writer, category):
            _require_taken_in(stranger)
            raise Conflict(
                "a file of that name lies in the folder of the categories, but no category has it.",
                hint="Take it in with memory_write, or move it away.",
            )
        empty = jsonform.canonical(journal.compose({}, journal.DEFAULT, ()))
        writer.append(draft(library, ChangeKind.CATEGORY_WRITTEN, category, text=empty))
        heading = writer.heading(category)
    if heading is None or heading.kind is not CategoryKind.LOG:
        raise Conflict(f"category {category!a} is a document, not a log.", hint="Use memory_write.")
    return heading


def _require_taken_in(document: Document) -> None:
    """Raise `Conflict` for a log of which there is only a file that a hand has made."""
    if document.category.kind is CategoryKind.LOG and not document.category.version:
        raise Conflict(
            "a log's file of that name lies in the folder of the categories, but no category has it.",
            hint="Ask the user to take it in with keepwell adopt, or to move it away.",
        )


def delete(library: Library, *, category: str, reason: str | None, expected_hash: str | None) -> Removed:
    """Take a category away; its versions stay and can be brought back."""
    library.access.require(category)
    check_expected(expected_hash)
    with library.store.writing() as writer:
        before = present(writer, category) or _missing(writer, category)
        require_hash(before, expected_hash)
        is_log = before.category.kind is CategoryKind.LOG
        if is_log:
            _require_taken_in(before)
        if before.edited_outside and not is_log:
            keep_edit(library, writer, before)
        # its last document stays with the deletion, whatever becomes of older versions
        gone = draft(library, ChangeKind.CATEGORY_DELETED, category, text=before.text, reason=reason)
        writer.append(gone)
        heading = writer.heading(category)
    version, deleted_at = (heading.version, heading.deleted_at or 0) if heading else (0, 0)
    note = f"To undo it: keepwell revert {category} {version}"
    return Removed(category, before.category.kind, before.category.hash, version, deleted_at, note)


def list_categories(library: Library, *, after: str | None, limit: int) -> Listing:
    """The live categories by name."""
    with library.store.reading() as reader:
        rows = reader.categories(after=after or "", limit=limit + 1)
        total = reader.counts().categories
    shown = tuple(
        CategoryRow(row.name, row.kind, row.hash, row.size_bytes, row.version, row.updated_at, row.updated_by)
        for row in rows[:limit]
    )
    listing = Listing(total, shown, shown[-1].name if len(rows) > limit else None)
    while len(listing.categories) > 1 and not library.caller.fits(listing):
        kept = listing.categories[: len(listing.categories) // 2]
        listing = replace(listing, categories=kept, next=kept[-1].name)
    return listing
