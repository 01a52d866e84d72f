"""Upgrades: a copy first, whole or not at all, once however many processes come; newer stores are left alone."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Clock, OpenLocal, world_of
from tests.store.faults import DEATH, Died, failing_disk
from tests.store.test_local import add

from keepwell.model.errors import KeepwellError, Unsupported
from keepwell.store.local.guard import SCHEMA_VERSION
from keepwell.store.local.upgrade import MIGRATIONS, upgrade

STEPS = {
    2: "CREATE TABLE extra (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO extra (text) SELECT text FROM memories;",
    3: "ALTER TABLE extra ADD COLUMN more TEXT; CREATE INDEX extra_by_text ON extra (text);",
}


@pytest.fixture
def old(open_local: OpenLocal, tmp_path: Path) -> Path:
    """A database of the first version with lessons in it."""
    store = open_local()
    for number in range(5):
        add(store, f"lesson {number}")
    store.close()
    return tmp_path / "memory.db"


def version_of(database: Path) -> tuple[int, list[str]]:
    with sqlite3.connect(database) as connection:
        [[version]] = connection.execute("PRAGMA user_version").fetchall()
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'extra%'")]
    connection.close()
    return version, sorted(names)


def test_each_step_is_done_and_a_whole_copy_of_the_old_database_is_kept(old: Path, clock: Clock) -> None:
    copy = upgrade(old, world_of(clock), migrations=STEPS)
    assert copy
    assert version_of(old) == (3, ["extra", "extra_by_text"])
    assert version_of(copy) == (1, [])
    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchall() == [(5,)]
    connection.close()
    assert upgrade(old, world_of(clock), migrations=STEPS) is None


# what SQLite meets while it closes a connection to a dead disk, nobody can catch
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_upgrade_that_dies_anywhere_leaves_a_version_that_is_whole(old: Path, tmp_path: Path, clock: Clock) -> None:
    turn = 0
    while True:
        turn += 1
        place = tmp_path / f"try {turn}"
        place.mkdir()
        for name in ("memory.db", "memory.db.key"):
            shutil.copy(old.with_name(name), place / name)
        database = place / "memory.db"
        died = False
        with failing_disk(place) as disk:
            disk.arm(turn, DEATH)
            try:
                upgrade(database, world_of(clock), migrations=STEPS)
            except (KeepwellError, Died):
                died = True
            disk.disarm()
        version, names = version_of(database)
        assert names == {1: [], 2: ["extra"], 3: ["extra", "extra_by_text"]}[version]
        upgrade(database, world_of(clock), migrations=STEPS)
        assert version_of(database) == (3, ["extra", "extra_by_text"])
        if not died:
            break
    assert turn > 10


def test_a_step_that_fails_is_taken_back(old: Path, clock: Clock) -> None:
    with pytest.raises(KeepwellError):
        upgrade(old, world_of(clock), migrations=STEPS | {3: "INSERT INTO no_such_table VALUES (1)"})
    assert version_of(old) == (2, ["extra"])


PROCESS = """
import sys
from pathlib import Path
from tests.store.test_upgrade import STEPS
from keepwell.store.local.upgrade import upgrade
from keepwell.wiring import real_world
upgrade(Path(sys.argv[1]), real_world(), migrations=STEPS)
"""


def test_processes_that_upgrade_at_once_do_each_step_once(old: Path) -> None:
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(old)], cwd=root, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    for process in started:
        process.communicate()
    assert version_of(old) == (3, ["extra", "extra_by_text"])
    with sqlite3.connect(old) as connection:
        assert connection.execute("SELECT count(*) FROM extra").fetchall() == [(5,)]
    connection.close()


def test_a_newer_store_is_refused_untouched(open_local: OpenLocal, old: Path, clock: Clock) -> None:
    upgrade(old, world_of(clock), migrations=STEPS)
    before = old.read_bytes()
    with pytest.raises(Unsupported, match="newer keepwell"):
        open_local()
    assert old.read_bytes() == before


def test_the_steps_lead_to_the_version_that_this_program_opens() -> None:
    assert max(MIGRATIONS, default=1) == SCHEMA_VERSION
