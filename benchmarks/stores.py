"""Stores for the benchmarks: in a temporary folder, opened without looking at the environment of who runs them."""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw

from keepwell import config, wiring
from keepwell.operations.library import Library


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder with a `project` and a `home` in it, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="keepwell-benchmark-") as name:
        folder = Path(name)
        (folder / "project").mkdir()
        (folder / "home").mkdir()
        yield folder


def database_in(folder: Path) -> Path:
    """Where the store of a folder is."""
    return folder / "store" / "memory.db"


def library_in(folder: Path, *, client: str | None = None) -> AbstractContextManager[Library]:
    """The folder's store, for a person in its project; with a client, deliveries are counted as for an assistant."""
    flags = {"database": str(database_in(folder)), "workspace": str(folder / "project"), "client": client}
    around = config.Surroundings({}, folder, folder / "home", "benchmark")
    return wiring.open_library(config.resolve(flags, around), person=True)


def bare_table(database: Path, *, busy_timeout_ms: int = 0) -> apsw.Connection:
    """A connection to a database with one plain table of texts and as durable as a store: WAL, `synchronous=FULL`."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(busy_timeout_ms)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS lessons (id INTEGER PRIMARY KEY, text TEXT, evidence TEXT) STRICT")
    return connection


def commit_row(connection: apsw.Connection, text: str, evidence: str) -> None:
    """Add one row in a transaction of its own: the least that a durable write can cost."""
    connection.execute("INSERT INTO lessons (text, evidence) VALUES (?, ?)", (text, evidence))
