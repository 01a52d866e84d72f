"""Replies for a person: tables and short texts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from keepwell.model.census import Counts
from keepwell.operations.replies import (
    BackedUp,
    Details,
    Found,
    Happening,
    Imported,
    Memory,
    Passage,
    Relinked,
    Report,
    Scopes,
    State,
    Written,
)
from keepwell.surfaces import safekeeping_views
from keepwell.surfaces.output import results
from keepwell.surfaces.render import moment
from keepwell.surfaces.terminal import Screen


def show(reply: object) -> None:
    """Print a reply."""
    with results():
        _show(reply, Screen())


def show_settings(rows: Iterable[Mapping[str, Any]], config_file: str | None) -> None:
    """Print every setting with its origin."""
    with results():
        screen = Screen()
        screen.say(f"Configuration file: {config_file or 'none'}")
        cells = [(row["name"], "" if row["value"] is None else row["value"], row["origin"], row["doc"]) for row in rows]
        screen.table(("setting", "value", "origin", "what it is"), cells)


@singledispatch
def _show(reply: object, screen: Screen) -> None:
    safekeeping_views.show(reply, screen)


@_show.register
def _(reply: Found, screen: Screen) -> None:
    _warn(reply.warnings, screen)
    where = f"{reply.scope} scope" + (f", project {reply.project}" if reply.project else "")
    for arm in reply.arms:
        if arm.state != "answered":
            screen.say(f"Note: the {arm.name} search {arm.state}; what only it would find is missing here.")
    if not reply.memories:
        screen.say(f"Nothing found ({where}).")
        return
    screen.say(reply.notice)
    columns = ("where", "scope", "saved", "used", "reports")
    screen.previews(columns, list(map(_hit_row, reply.memories)), [memory.text for memory in reply.memories])
    rest = " Some were left out to keep the answer short." if reply.truncated else ""
    screen.say(f"{len(reply.memories)} of {reply.found} found ({where}).{rest}")


def _hit_row(hit: Memory | Passage) -> tuple[object, ...]:
    if isinstance(hit, Memory):
        return (hit.id, hit.scope, moment(hit.created_at)[:10], hit.statistics.retrieval_count, _reports(hit))
    place = f"{hit.category}:{hit.key_path}" if hit.entry_id is None else f"{hit.category}#{hit.entry_id}"
    return (place, hit.kind, moment(hit.updated_at)[:10], "", "")


def _reports(memory: Memory) -> str:
    counts = memory.statistics
    against = counts.not_useful_count + counts.incorrect_count + counts.outdated_count
    disputed = " disputed" if memory.disputed else ""
    return f"+{counts.useful_count} -{against}{disputed}"


@_show.register
def _(reply: Details, screen: Screen) -> None:
    _warn(reply.warnings, screen)
    memory = reply.memory
    screen.say(reply.notice)
    where = reply.project or "everywhere"
    screen.say(f"Lesson {memory.id}, {memory.status}, {memory.scope} scope ({where})")
    screen.quote(memory.text)
    for item in memory.evidence:
        screen.say("evidence:")
        screen.quote(item.description, indent="  ")
        if item.source_uri:
            screen.quote(f"from {item.source_uri}", indent="  ")
    _show_facts(memory, screen)
    _show_events(reply.events, screen)
    _show_feedback(reply.feedback, screen)
    if reply.truncated:
        screen.say("Older changes and reports were left out.")


def _show_facts(memory: Memory, screen: Screen) -> None:
    source = memory.source
    by = [source.client, source.session and f"session {source.session}", source.model and f"model {source.model}"]
    screen.say(f"saved {moment(memory.created_at)} by {', '.join(part for part in by if part)}")
    if memory.archived_at:
        screen.say(f"archived {moment(memory.archived_at)}")
    if memory.supersedes_id:
        screen.say(f"replaces lesson {memory.supersedes_id}")
    if memory.superseded_by:
        screen.say(f"replaced by lesson {', '.join(map(str, memory.superseded_by))}")
    counts = memory.statistics
    screen.say(
        f"delivered {counts.retrieval_count} times; reports: {counts.useful_count} useful, {counts.not_useful_count} "
        f"not useful, {counts.incorrect_count} incorrect, {counts.outdated_count} outdated"
    )


def _show_events(events: Sequence[Happening], screen: Screen) -> None:
    for event in events:
        by = f" by lesson {event.successor_id}" if event.successor_id else ""
        screen.say(f"{moment(event.created_at)}  {event.action}{by} ({event.actor}, {event.source.client})")
        if event.reason:
            screen.quote(event.reason, indent="  ")


def _show_feedback(reports: Sequence[Report], screen: Screen) -> None:
    for report in reports:
        screen.say(f"{moment(report.created_at)}  reported {report.verdict} ({report.source.client})")
        if report.reason:
            screen.quote(report.reason, indent="  ")


def _warn(warnings: Iterable[str], screen: Screen) -> None:
    for warning in warnings:
        screen.say(f"Note: {warning}")


@_show.register
def _(reply: Written, screen: Screen) -> None:
    where = "globally" if reply.project is None else f"in project {reply.project}"
    sentence = {
        "added": f"Lesson {reply.id} saved {where}.",
        "existing": f"Lesson {reply.id} says this already {where}.",
        "superseded": f"Lesson {reply.id} replaces lesson {reply.supersedes_id} {where}.",
        "archived": f"Lesson {reply.id} is archived {where}.",
        "recorded": f"Report on lesson {reply.id} recorded {where}.",
    }[reply.outcome]
    screen.say(sentence + (" (first answer to this operation id)" if reply.repeated else ""))
    if reply.note:
        screen.say(reply.note)


@_show.register
def _(reply: Scopes, screen: Screen) -> None:
    rows = [
        (
            row.kind,
            row.name,
            row.active,
            row.archived,
            (row.path or "") + (" (this project)" if row.here else "") + (" (folder is gone)" if row.missing else ""),
        )
        for row in reply.scopes
    ]
    screen.table(("scope", "name", "active", "archived", "path"), rows)


@_show.register
def _(reply: Relinked, screen: Screen) -> None:
    screen.say(f"{reply.active} active lessons of {reply.old_path} belong to {reply.new_path} now.")


@_show.register
def _(reply: State, screen: Screen) -> None:
    rows: list[tuple[str, object]] = [
        ("keepwell", reply.version),
        ("database", reply.database or "none"),
        ("writable", "yes" if reply.writable else "no"),
        ("schema version", reply.schema_version),
        ("journal mode", reply.journal_mode or "none"),
        ("synchronous", reply.synchronous or "none"),
        ("file system", reply.file_system or "unknown"),
        ("database size", f"{reply.database_bytes or 0:,} bytes"),
        ("write-ahead log", f"{reply.wal_bytes or 0:,} bytes"),
        ("categories", reply.categories_dir or "none"),
        ("backups", reply.backups_dir or "none"),
        ("free disk", "unknown" if reply.free_bytes is None else f"{reply.free_bytes:,} bytes"),
        ("device", reply.device or "none"),
        ("manifest", reply.manifest_hash),
        ("not synced", _some(reply.dirty)),
        ("project", reply.project or reply.project_problem or "none"),
        *_total_rows(reply.totals),
    ]
    screen.table(("what", "value"), rows)
    if reply.checked:
        for line in reply.faults or ("Everything was read and compared; no fault was found.",):
            screen.say(line)


def _some(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "none"


def _total_rows(totals: Counts) -> list[tuple[str, object]]:
    return [
        ("scopes", totals.scopes),
        ("lessons", f"{totals.lessons} ({totals.active_lessons} active)"),
        ("changes", totals.changes),
        ("retrievals", totals.retrievals),
        ("feedback", totals.feedback),
        ("categories", totals.categories),
        ("versions", totals.category_versions),
        ("log entries", totals.log_entries),
    ]


@_show.register
def _(reply: BackedUp, screen: Screen) -> None:
    rows = [("file", reply.path), ("size", f"{reply.size_bytes:,} bytes"), ("verified", "yes")]
    screen.table(("backup", ""), [*rows, *_total_rows(reply.totals)])


@_show.register
def _(reply: Imported, screen: Screen) -> None:
    verb = "would be added" if reply.dry_run else "added"
    screen.say(f"{reply.added} {verb}, {reply.existing} known already, {len(reply.refused)} lines refused.")
    for bad in reply.refused:
        screen.say(f"line {bad.line}: {bad.problem}")
