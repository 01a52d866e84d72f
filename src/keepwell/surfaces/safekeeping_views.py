"""Replies about a store as a whole for a person; `views` shows them."""

from functools import singledispatch

from keepwell.operations.safekeeping_replies import (
    Adopted,
    Exported,
    Forgotten,
    Planned,
    RebuiltStore,
    RestoredStore,
    SnapshotTaken,
    Verified,
)
from keepwell.surfaces import category_views
from keepwell.surfaces.terminal import Screen


@singledispatch
def show(reply: object, screen: Screen) -> None:
    """Print a reply."""
    category_views.show(reply, screen)


@show.register
def _(reply: SnapshotTaken, screen: Screen) -> None:
    backups = "with backups" if reply.with_backups else "without the backups of categories"
    screen.say(f"{reply.path}: {reply.lessons} lessons and {reply.categories} categories, verified, {backups}.")
    for path in reply.removed:
        screen.say(f"removed {path}")


@show.register
def _(reply: RestoredStore, screen: Screen) -> None:
    match reply.outcome:
        case "undone":
            screen.say(f"The restore of {reply.snapshot} was undone; the former store is in its place.")
        case _:
            screen.say(f"The snapshot is in its place ({reply.outcome}). The former store is in {reply.parked}")
            screen.say("keepwell verify looks at everything once more.")


@show.register
def _(reply: Verified, screen: Screen) -> None:
    for found in reply.findings:
        screen.say(f"{found.subject}: {found.problem} {found.remedy}")
    screen.say("Everything was read and compared." if reply.healthy else f"{len(reply.findings)} findings.")


@show.register
def _(reply: RebuiltStore, screen: Screen) -> None:
    verb = "would be made" if reply.dry_run else "was made"
    screen.say(
        f"The database {verb} again: {reply.changes} changes from the log; {reply.categories} categories with "
        f"{reply.versions} versions from the files."
    )
    for problem in reply.problems:
        screen.say(f"not read: {problem}")
    if reply.parked:
        screen.say(f"The former database is in {reply.parked}")


@show.register
def _(reply: Planned, screen: Screen) -> None:
    rows = [(row.name, row.action, row.file_hash[:12], (row.committed_hash or "none")[:12]) for row in reply.adopt]
    screen.table(("category", "action", "file", "committed"), rows)
    for problem in reply.problems:
        screen.say(f"left out: {problem}")
    screen.say(f"The plan is in {reply.path}; nothing was changed. Read it, then: keepwell adopt --apply {reply.path}")


@show.register
def _(reply: Adopted, screen: Screen) -> None:
    for row in reply.adopted:
        screen.say(f"{row.name}: taken in as version {row.version}")
    for told in reply.refused:
        screen.say(f"left alone: {told}")
    screen.say(f"{len(reply.adopted)} taken in, {len(reply.refused)} left alone.")


@show.register
def _(reply: Forgotten, screen: Screen) -> None:
    screen.say(f"{reply.subject} was erased. {reply.note}")


@show.register
def _(reply: Exported, screen: Screen) -> None:
    screen.say(f"{reply.path}: {reply.changes} changes, {reply.scopes} scopes, {reply.deliveries} deliveries.")
