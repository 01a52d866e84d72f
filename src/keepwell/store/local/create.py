"""A new database appears whole or not at all, also when several processes make it at once."""

from pathlib import Path

from keepwell.model.errors import Corrupt
from keepwell.store.local.files import make_private_file, make_private_folders, publish
from keepwell.store.local.link import Link
from keepwell.store.sql import statements
from keepwell.store.world import World


def ensure_database(database: Path, world: World, *, journal_mode: str) -> None:
    """Make the database with its schema unless there is one; the folder too.

    `OSError` when that is impossible, `Corrupt` when there is only the log of a database that is gone.
    """
    # asked first: another process may be making both just now
    orphans = [
        path
        for path in map(database.with_name, (f"{database.name}-wal", f"{database.name}-journal"))
        if _holds_something(path)
    ]
    if database.exists() or database.is_symlink():
        return
    if orphans:
        # SQLite would play it into the new database, where it does not belong
        raise Corrupt(
            "the database is gone, but what was last written to it is still beside it.",
            hint="Put the database back, restore a snapshot, or run keepwell rebuild.",
            file=orphans[0],
        )
    make_private_folders(database.parent)
    draft = database.with_name(f"{database.name}.{world.random_bytes(8).hex()}.new")
    try:
        make_private_file(draft)
        _fill(draft, world, journal_mode)
        publish(draft, database)
    except FileExistsError:
        # another process was first; its database is as good
        return
    finally:
        draft.unlink(missing_ok=True)


def _holds_something(path: Path) -> bool:
    try:
        return path.lstat().st_size > 0
    except OSError:
        return False


def _fill(draft: Path, world: World, journal_mode: str) -> None:
    link = Link(draft, "write", world, busy_timeout_ms=0)
    try:
        link.rows("synchronous_full")
        link.rows("identify")
        link.rows("version_1")
        link.rows("begin_write")
        link.script(statements("local/schema.sql")["schema"])
        link.rows("commit")
        link.rows(f"journal_{journal_mode}")
    finally:
        link.close()
