"""Replies about categories for a person; `views` shows them."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from keepwell.model import jsonform
from keepwell.operations.category_replies import (
    Appended,
    Changes,
    Checkup,
    Compaction,
    Context,
    Delta,
    Listing,
    Read,
    Removed,
    Saved,
    VersionRow,
    Versions,
)
from keepwell.surfaces.render import moment
from keepwell.surfaces.terminal import Screen

_SHORT_HASH = 12


@singledispatch
def show(reply: object, _screen: Screen) -> None:
    """Print a reply."""
    raise TypeError(f"no view for {type(reply).__name__}")


@show.register
def _(reply: Read, screen: Screen) -> None:
    screen.say(reply.notice)
    by = f", {moment(reply.updated_at)} by {reply.updated_by}" if reply.updated_at else ""
    screen.say(f"{reply.category} ({reply.kind}), version {reply.version}{by}, {reply.size_bytes:,} bytes")
    screen.say(f"hash {reply.hash}")
    if reply.edited_outside:
        screen.say("Note: the file was edited outside keepwell.")
    _document(reply.data, screen)


def _document(data: Any, screen: Screen) -> None:
    screen.quote(jsonform.canonical(data))


@show.register
def _(reply: Saved, screen: Screen) -> None:
    screen.say(f"{reply.category} {reply.outcome}: version {reply.version}, {reply.size_bytes:,} bytes.")
    screen.say(f"hash {reply.hash}")
    if reply.note:
        screen.say(reply.note)


@show.register
def _(reply: Appended, screen: Screen) -> None:
    again = " (first answer to this operation id)" if reply.repeated else ""
    screen.say(f"Entry {reply.id} of {reply.category} saved {reply.ts}; it has {reply.total_entries} now.{again}")


@show.register
def _(reply: Removed, screen: Screen) -> None:
    screen.say(f"{reply.category} deleted (version {reply.version}). {reply.note}")


@show.register
def _(reply: Listing, screen: Screen) -> None:
    rows = [
        (row.name, row.kind, f"{row.size_bytes:,}", row.version, moment(row.updated_at)[:19], row.updated_by)
        for row in reply.categories
    ]
    screen.table(("category", "kind", "bytes", "version", "changed", "by"), rows)
    more = f" Go on with --after {reply.next}" if reply.next else ""
    screen.say(f"{len(rows)} of {reply.total} categories.{more}")


@show.register
def _(reply: Versions, screen: Screen) -> None:
    screen.say(reply.notice)
    deleted = f", deleted {moment(reply.deleted_at)}" if reply.deleted_at else ""
    screen.say(f"{reply.category} ({reply.kind}{deleted})")
    _version_table(reply.versions, screen)
    if reply.changes:
        _changes(reply.changes, screen)
    elif reply.data is not None:
        _document(reply.data, screen)
    if reply.next:
        screen.say(f"Older ones: --before {reply.next}")


def _version_table(versions: Sequence[VersionRow], screen: Screen) -> None:
    columns = ("version", "what", "when", "by", "bytes", "hash")
    rows = [
        (row.version, row.action, moment(row.created_at)[:19], row.actor, f"{row.size_bytes:,}", row.hash[:_SHORT_HASH])
        for row in versions
    ]
    screen.previews(columns, rows, [row.reason or "" for row in versions])


def _changes(changes: Changes, screen: Screen) -> None:
    for pointer, value in changes.added.items():
        screen.quote(f"+ {pointer or '(the document)'}: {jsonform.compact(value)}")
    for pointer in changes.removed:
        screen.quote(f"- {pointer}")
    for pointer, value in changes.changed.items():
        screen.quote(f"~ {pointer or '(the document)'}: {jsonform.compact(value)}")


@show.register
def _(reply: Delta, screen: Screen) -> None:
    screen.say(reply.notice)
    screen.say(f"{reply.category}: {reply.status}" + (f", hash {reply.hash}" if reply.hash else ""))
    if reply.changes:
        _changes(reply.changes, screen)
    if reply.data is not None:
        _document(reply.data, screen)
    if reply.note:
        screen.say(reply.note)


@show.register
def _(reply: Context, screen: Screen) -> None:
    screen.say(reply.notice)
    for piece in reply.categories:
        screen.say(f"{piece.category} ({piece.kind}), {piece.tokens:,} tokens")
        _document(piece.data, screen)
    for lesson in reply.lessons:
        screen.say(f"lesson {lesson.id} ({lesson.scope})")
        screen.quote(lesson.text)
    for left_out in (*reply.trimmed, *reply.failed):
        screen.say(f"{left_out.category}: {left_out.reason}")
    screen.say(f"{reply.used_tokens:,} of {reply.budget_tokens:,} tokens used.")


@show.register
def _(reply: Compaction, screen: Screen) -> None:
    rows = [(row.category, row.versions, row.entries) for row in reply.categories]
    screen.table(("category", "versions", "entries"), rows)
    verb = "would be removed" if reply.dry_run else "removed"
    screen.say(
        f"{sum(row[1] for row in rows)} versions, {sum(row[2] for row in rows)} entries and {reply.backups} "
        f"backups ({reply.backup_bytes:,} bytes) {verb}; {reply.keep_versions} versions of each are kept."
    )
    for name in reply.skipped:
        screen.say(f"{name}: skipped, the access list does not let this device write it.")


@show.register
def _(reply: Checkup, screen: Screen) -> None:
    for sentence in reply.fixed:
        screen.say(f"Done: {sentence}")
    for found in reply.findings:
        screen.say(f"{found.subject}: {found.problem} {found.remedy}")
    if reply.healthy:
        screen.say("Everything was looked at; nothing is wrong.")
