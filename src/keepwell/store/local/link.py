"""One connection to the database: opened with our settings, patient within limits, never for ever."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import apsw

from keepwell.model.errors import Busy
from keepwell.store.local.complaints import BUSY_HINT
from keepwell.store.sql import statements
from keepwell.store.world import World

SQL: Final = statements("queries.sql", "local/connect.sql", "local/search.sql")

Row = dict[str, Any]
Mode = Literal["write", "read", "frozen"]
"""How a file is opened; `frozen` is for a read-only folder where no other process can be writing either."""

_PAUSE_MS: Final = 12
"""A pause between two tries for a lock is drawn from one to this many milliseconds, so that waiters do not march."""


def quiet_mode(database: Path) -> Mode:
    """How to open a database that must not be changed, not even by files beside it."""
    # with a write-ahead log the file alone is not the database
    return "read" if database.with_name(database.name + "-wal").exists() else "frozen"


class Link:
    """A connection with named statements. Belongs to one thread at a time."""

    def __init__(self, database: Path, mode: Mode, world: World, *, busy_timeout_ms: int) -> None:
        self.mode: Final = mode
        self._world: Final = world
        self._busy_timeout_ms: Final = busy_timeout_ms
        self._statement_since = 0
        self._deadline = 0
        self.stopping = False
        self._db: Final = _open(database, mode)
        self._db.row_trace = _by_name
        self._db.set_busy_handler(self._wait)

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement to its end and give its rows by column name."""
        self._statement_since = self._world.elapsed_ms()
        return list(self._db.execute(SQL[name], values))

    def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row, or None."""
        found = self.rows(name, **values)
        return found[0] if found else None

    def value(self, name: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.row(name, **values)
        return next(iter(row.values())) if row else None

    def each(self, name: str, rows: Iterable[Row]) -> None:
        """Run a named statement that gives no rows once for each set of values."""
        self._statement_since = self._world.elapsed_ms()
        self._db.executemany(SQL[name], rows)

    def script(self, sql: str) -> None:
        """Run several statements."""
        self._db.execute(sql)

    def set_version(self, version: int) -> None:
        """Say which schema the database has."""
        # a pragma takes no parameters
        self._db.pragma("user_version", version)

    def allow(self, budget_ms: int) -> None:
        """From now on wait for locks no longer than `budget_ms` in all."""
        self._deadline = self._world.elapsed_ms() + budget_ms

    def run_patiently(self, name: str) -> None:
        """Run a statement that needs a lock, again and again until the budget is spent; then `Busy`."""
        while True:
            try:
                self.rows(name)
            except (apsw.BusyError, apsw.LockedError):
                if self.stopping or self._world.elapsed_ms() >= self._deadline:
                    raise Busy("the store is busy; retry later.", hint=BUSY_HINT) from None
                self._pause()
            else:
                return

    def roll_back(self) -> None:
        """End a transaction, if one is open, as if it had never been."""
        if self._db.in_transaction:
            self._db.execute(SQL["rollback"])

    def copy_to(self, target: Path) -> None:
        """Copy one instant of the whole database into an empty file."""
        destination = apsw.Connection(str(target))
        try:
            with destination.backup("main", self._db, "main") as backup:
                while not backup.done:
                    # all pages in one step: one instant, and no writer is kept waiting in WAL mode
                    backup.step(-1)
            destination.execute(SQL["journal_delete"])
        finally:
            destination.close()

    def interrupt(self) -> None:
        """End what runs and stop waiting; may be called from another thread."""
        self.stopping = True
        self._db.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _wait(self, _attempt: int) -> bool:
        now = self._world.elapsed_ms()
        patience = min(self._statement_since + self._busy_timeout_ms, self._deadline)
        if self.stopping or now >= patience:
            return False
        self._pause()
        return True

    def _pause(self) -> None:
        chance = self._world.random_bytes(1)[0] / 256
        self._world.pause_ms(1 + chance * (_PAUSE_MS - 1))


def _open(database: Path, mode: Mode) -> apsw.Connection:
    if mode == "write":
        return apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    options = "mode=ro&immutable=1" if mode == "frozen" else "mode=ro"
    return apsw.Connection(f"{database.as_uri()}?{options}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _by_name(cursor: apsw.Cursor, row: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.get_description(), row, strict=True)}
