"""What was acknowledged is there: after SIGKILL, with several processes, in every copy."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.conftest import OpenLocal
from tests.store.test_local import add, texts

from keepwell.model.errors import Conflict, KeepwellError, NotFound
from keepwell.store.local.engine import LocalStore

WRITER = Path(__file__).with_name("writer_process.py")


def start(database: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(database), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lessons(store: LocalStore) -> dict[int, str]:
    with store.reading() as reader:
        numbers = range(1, reader.counts().lessons + 1)
        return {number: lesson.text for number in numbers if (lesson := reader.lesson(number))}


def test_fifty_kills_in_a_burst_of_writes_lose_nothing_acknowledged(open_local: OpenLocal, tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: dict[int, str] = {}
    for burst in range(50):
        process = start(tmp_path / "memory.db", f"burst-{burst}", 100_000)
        assert process.stdout
        first = process.stdout.readline()
        assert first, process.communicate()[1]
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        for line in (first + process.communicate()[0]).splitlines(keepends=True):
            # the last line may have been cut by the kill
            if line.endswith("\n"):
                number, text = line.rstrip("\n").split(" ", 1)
                acknowledged[int(number)] = text
    store = open_local()
    kept = lessons(store)
    assert len(acknowledged) >= 50
    assert {number: kept.get(number) for number in acknowledged} == acknowledged
    assert store.check() == ()


def test_six_processes_on_an_empty_folder_make_one_store_and_keep_all_they_write(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    processes = [start(tmp_path / "new" / "memory.db", f"p{number}", 10) for number in range(6)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert errors == [""] * 6
    store = open_local("new/memory.db")
    assert len(set(lessons(store).values())) == 60
    assert sorted(path.name for path in (tmp_path / "new").iterdir() if ".new" in path.name) == []
    with store.reading() as reader:
        changes = reader.changes(after=0, limit=99)
    assert len({change.key_id for change in changes}) == 1
    assert [change.stamp for change in changes] == sorted(change.stamp for change in changes)


@pytest.fixture
def busy_writers(tmp_path: Path, open_local: OpenLocal) -> Iterator[Path]:
    """A store that two processes write to all the time."""
    open_local()
    database = tmp_path / "memory.db"
    processes = [start(database, f"w{number}", 1_000_000) for number in range(2)]
    for process in processes:
        assert process.stdout
        process.stdout.readline()
    yield database
    for process in processes:
        process.kill()
        process.communicate()


def test_twenty_backups_during_constant_writes_are_whole_and_of_one_instant(
    busy_writers: Path, open_local: OpenLocal, tmp_path: Path
) -> None:
    store = open_local()
    for number in range(20):
        counts = store.backup(tmp_path / f"copy-{number}.db")
        copy = open_local(f"copy-{number}.db")
        assert copy.check() == ()
        with copy.reading() as reader:
            assert reader.counts() == counts
            assert counts.lessons == counts.changes > 0
        copy.close()


def test_a_backup_holds_the_last_acknowledged_write_and_opens_elsewhere(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    add(store, "before")
    add(store, "the last acknowledged")
    (tmp_path / "elsewhere").mkdir()
    counts = store.backup(tmp_path / "elsewhere" / "memory.db")
    assert (counts.lessons, counts.active_lessons) == (2, 2)
    restored = open_local("elsewhere/memory.db")
    assert texts(restored, "acknowledged") == ["the last acknowledged"]
    assert add(restored, "goes on") == 3
    assert sorted(path.name for path in tmp_path.glob("elsewhere/.*")) == []


@pytest.mark.parametrize("kind", ["a file", "a folder", "a link"])
def test_a_backup_never_replaces_anything(open_local: OpenLocal, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "taken"
    match kind:
        case "a file":
            target.write_text("precious")
        case "a folder":
            target.mkdir()
        case _:
            target.symlink_to(tmp_path / "nowhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    store = open_local()
    add(store, "one")
    with pytest.raises(Conflict):
        store.backup(target)
    assert kind != "a file" or target.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} - set(before) == {
        "memory.db",
        "memory.db-wal",
        "memory.db-shm",
        "memory.db.key",
    }


def test_a_backup_into_a_missing_folder_is_refused(open_local: OpenLocal, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_local().backup(tmp_path / "no" / "copy.db")


def test_a_backup_that_fails_leaves_nothing_behind(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    add(store, "one")
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("DELETE FROM memory_search_index")
    (tmp_path / "out").mkdir()
    with pytest.raises(KeepwellError, match="not whole"):
        store.backup(tmp_path / "out" / "copy.db")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_documented_restore_brings_the_backup_back(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    add(store, "kept in the backup")
    store.backup(tmp_path / "backup.db")
    add(store, "written afterwards")
    store.close()
    parked = tmp_path / "parked"
    parked.mkdir()
    for path in tmp_path.glob("memory.db*"):
        if path.suffix != ".key":
            path.rename(parked / path.name)
    (tmp_path / "memory.db").write_bytes((tmp_path / "backup.db").read_bytes())
    restored = open_local()
    assert list(lessons(restored).values()) == ["kept in the backup"]
    assert restored.check() == ()
