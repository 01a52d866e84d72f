"""The local engine: files, permissions, damage, locks and append-only rows."""

import hashlib
import os
import re
import stat
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from tests.conftest import PROJECT_A, OpenLocal

from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Busy, Corrupt, Denied, KeepwellError, Unsupported
from keepwell.model.lesson import Author, Evidence, Verdict
from keepwell.model.query import LessonQuery
from keepwell.model.scope import ScopeRef
from keepwell.store.local import mounts
from keepwell.store.local.engine import LocalStore, Options
from keepwell.store.local.keyfile import key_path
from keepwell.store.port import Receipt
from keepwell.wiring import real_world, uid_maker

A = ScopeRef(PROJECT_A)
ENGINE_WORDS = re.compile(r"sqlite|apsw|locked|SQL|PRAGMA|/", re.IGNORECASE)


def add(store: LocalStore, text: str, uid: str | None = None) -> int:
    payload = Payload(text, (Evidence("seen"),))
    with store.writing() as writer:
        return writer.append(Draft(ChangeKind.LESSON_ADDED, uid or f"uid {text}", A, Author("assistant"), payload))


def texts(store: LocalStore, word: str) -> list[str]:
    with store.reading() as reader:
        scope = reader.scope(A)
        assert scope
        hits = reader.search(LessonQuery((word,), (scope.id,)))
        return [lesson.text for hit in hits if (lesson := reader.lesson(hit.lesson_id))]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_files_are_private_whatever_the_umask(open_local: OpenLocal, tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        store = open_local("new/deep folder/größe/memory.db")
        add(store, "one")
        store.backup(tmp_path / "copy.db")
    finally:
        os.umask(old)
    folder = tmp_path / "new/deep folder/größe"
    assert {path.name: mode_of(path) for path in folder.iterdir()} == {
        "memory.db": 0o600,
        "memory.db-wal": 0o600,
        "memory.db-shm": 0o600,
        "memory.db.key": 0o600,
    }
    assert mode_of(tmp_path / "copy.db") == 0o600
    assert [mode_of(path) for path in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3


def test_an_existing_folder_keeps_its_permissions(open_local: OpenLocal, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    open_local("mine/memory.db")
    assert mode_of(tmp_path / "mine") == 0o755


def test_the_database_says_whose_it_is_and_which_schema_it_has(open_local: OpenLocal, tmp_path: Path) -> None:
    open_local().close()
    header = (tmp_path / "memory.db").read_bytes()[:100]
    assert header[68:72] == b"KWEL"
    assert struct.unpack(">i", header[60:64]) == (1,)


APPEND_ONLY = [
    "changes",
    "change_payloads",
    "memories",
    "evidence",
    "events",
    "memory_retrievals",
    "memory_feedback",
    "receipts",
]


@pytest.fixture
def raw(open_local: OpenLocal, tmp_path: Path) -> apsw.Connection:
    """A foreign program's connection to a store with a row in every table."""
    store = open_local()
    number = add(store, "one", uid="u1")
    with store.writing() as writer:
        draft = Draft(ChangeKind.LESSON_RATED, "u1", A, Author("assistant"), Payload(), verdict=Verdict.USEFUL)
        writer.append(draft)
        writer.record_retrievals((number,), method="get")
        writer.remember(A, "op", Receipt("memory_add", "f", "{}"))
    store.close()
    return apsw.Connection(str(tmp_path / "memory.db"))


@pytest.mark.parametrize("table", [*APPEND_ONLY, "scopes"])
def test_no_program_can_delete_a_row(raw: apsw.Connection, table: str) -> None:
    assert list(raw.execute(f"SELECT count(*) FROM {table}")) != [(0,)]
    with pytest.raises(apsw.ConstraintError):
        raw.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_no_program_can_change_a_row(raw: apsw.Connection, table: str) -> None:
    column = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")][1]
    with pytest.raises(apsw.ConstraintError):
        raw.execute(f"UPDATE {table} SET {column} = {column}")


def test_a_lesson_can_be_archived_once_and_never_revived(raw: apsw.Connection) -> None:
    raw.execute("UPDATE memories SET status = 'archived', archived_at = 1 WHERE id = 1")
    with pytest.raises(apsw.ConstraintError):
        raw.execute("UPDATE memories SET status = 'active', archived_at = NULL WHERE id = 1")


def test_two_active_lessons_cannot_say_the_same(raw: apsw.Connection) -> None:
    with pytest.raises(apsw.ConstraintError):
        raw.execute(
            "INSERT INTO memories "
            "(uid, scope_id, text, text_hash, source_actor, source_client, created_at, change_seq) "
            "SELECT 'u2', scope_id, text, text_hash, source_actor, source_client, created_at, change_seq FROM memories"
        )


def foreign(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x); PRAGMA application_id = 7; PRAGMA user_version = 3")
    connection.close()


def with_version(version: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        make_store(path)
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()

    return make


def make_store(path: Path) -> None:
    """A store with one lesson, closed again."""
    world = real_world()
    store = LocalStore(path, device="laptop", world=world, new_uid=uid_maker(world))
    add(store, "something kept")
    store.close()


def damaged(start: int, length: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        make_store(path)
        with path.open("r+b") as file:
            file.seek(start)
            file.write(b"\xa5" * length)

    return make


UNFIT = {
    "another program's": (foreign, Unsupported, "another program"),
    "a newer one": (with_version(2), Unsupported, "newer keepwell"),
    "one without a schema": (with_version(0), Corrupt, "no known schema"),
    "an empty file": (lambda path: path.touch(), Corrupt, "empty"),
    "a short file": (lambda path: path.write_bytes(b"SQLite format 3\0"), Corrupt, "damaged"),
    "a text file": (lambda path: path.write_text("hello " * 100), Corrupt, "never was a database"),
    "a damaged header": (damaged(0, 16), Corrupt, "damaged"),
    "a folder": (lambda path: path.mkdir(), Unsupported, "not a file"),
}


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".key"]
    return {path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("kind", UNFIT)
def test_an_unfit_file_is_refused_in_its_own_words_and_not_touched(
    open_local: OpenLocal, tmp_path: Path, kind: str
) -> None:
    make, error, words = UNFIT[kind]
    make(tmp_path / "memory.db")
    before = fingerprint(tmp_path)
    with pytest.raises(error, match=words) as raised:
        open_local()
    assert not ENGINE_WORDS.search(raised.value.sentence)
    assert raised.value.hint or kind == "a folder"
    assert fingerprint(tmp_path) == before


def test_damage_inside_the_file_is_told_and_never_shown_as_an_empty_store(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    damaged(4096, 60_000)(tmp_path / "memory.db")

    def use() -> None:
        store = open_local()
        texts(store, "something")

    with pytest.raises(Corrupt):
        use()


def test_a_damaged_write_ahead_log_is_refused_because_it_holds_acknowledged_writes(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    add(open_local(), "in the log")
    wal = tmp_path / "memory.db-wal"
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("memory.db", "memory.db-wal"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    assert wal.stat().st_size > 32
    assert texts(open_local("copy/memory.db"), "log") == ["in the log"]
    broken = bytearray(wal.read_bytes())
    broken[20] ^= 0xFF
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/memory.db").write_bytes((tmp_path / "memory.db").read_bytes())
    (tmp_path / "broken/memory.db-wal").write_bytes(broken)
    with pytest.raises(Corrupt, match="write-ahead log"):
        open_local("broken/memory.db")


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "memory.db-journal"])
def test_a_link_in_the_place_of_a_database_file_is_refused(open_local: OpenLocal, tmp_path: Path, name: str) -> None:
    open_local("real/memory.db").close()
    (tmp_path / "elsewhere").write_bytes(b"")
    if name == "memory.db":
        (tmp_path / name).symlink_to(tmp_path / "real/memory.db")
    else:
        make_store(tmp_path / "memory.db")
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unsupported, match="symbolic link"):
        open_local()


def test_a_link_to_the_folder_is_fine(open_local: OpenLocal, tmp_path: Path) -> None:
    add(open_local("real/memory.db"), "through a link")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert texts(open_local("linked/memory.db"), "link") == ["through a link"]


def test_a_lost_key_makes_a_new_one_and_lessons_stay(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    add(store, "before")
    store.close()
    key_path(tmp_path / "memory.db").unlink()
    again = open_local()
    add(again, "after")
    assert texts(again, "before") == ["before"]
    with again.reading() as reader:
        assert len({change.key_id for change in reader.changes(after=0, limit=9)}) == 2


def test_a_damaged_key_is_told(open_local: OpenLocal, tmp_path: Path) -> None:
    open_local().close()
    key_path(tmp_path / "memory.db").write_bytes(b"short")
    with pytest.raises(Corrupt, match="key file"):
        open_local()


@pytest.mark.parametrize("options", [Options(journal_mode="delete"), Options(shared_mount="yes")])
def test_the_rollback_journal_is_used_where_it_is_asked_for_or_needed(
    open_local: OpenLocal, tmp_path: Path, options: Options
) -> None:
    store = open_local(options=options)
    add(store, "journal from the start")
    assert store.status().journal_mode == "delete"
    assert not (tmp_path / "memory.db-wal").exists()
    assert add(open_local(options=options), "a second one beside it") == 2


def test_a_store_changes_its_journal_once_nobody_else_has_it_open(open_local: OpenLocal) -> None:
    first = open_local()
    add(first, "written with the log")
    beside = open_local(options=Options(journal_mode="delete"))
    assert add(beside, "still with the log") == 2
    assert beside.status().journal_mode == "wal"
    first.close()
    beside.close()
    alone = open_local(options=Options(journal_mode="delete"))
    assert alone.status().journal_mode == "delete"
    assert len(texts(alone, "log")) == 2


def test_a_log_that_others_use_on_a_shared_file_system_is_not_joined(open_local: OpenLocal) -> None:
    add(open_local(), "written with the log")
    with pytest.raises(Busy):
        open_local(options=Options(shared_mount="yes"))


MOUNTS = textwrap.dedent(
    """\
    21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
    30 21 0:40 / /mnt/share rw - nfs4 server:/x rw
    31 21 0:41 / /mnt/with\\040blank rw master:7 - 9p host rw
    32 30 8:2 / /mnt/share/disk rw - xfs /dev/sdb rw
    33 21 0:50 / /mnt/share2 rw - tmpfs tmpfs rw
    """
)


@pytest.mark.parametrize(
    ("folder", "kind", "shared"),
    [
        ("/home/me", "ext4", False),
        ("/mnt/share/deep", "nfs4", True),
        ("/mnt/share", "nfs4", True),
        ("/mnt/shared", "ext4", False),
        ("/mnt/share2/x", "tmpfs", False),
        ("/mnt/share/disk/x", "xfs", False),
        ("/mnt/with blank/x", "9p", True),
    ],
)
def test_the_mount_table_tells_the_file_system(tmp_path: Path, folder: str, kind: str, *, shared: bool) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert mounts.file_system_of(Path(folder), mount_table=table) == kind
    assert (kind in mounts.SHARED) is shared


def test_without_a_mount_table_nothing_is_claimed(tmp_path: Path) -> None:
    assert mounts.file_system_of(tmp_path, mount_table=tmp_path / "none") is None


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that can be made read-only, as it may happen in a sandbox."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def check_that_it_can_only_be_read(store: LocalStore, disk: Path) -> None:
    assert texts(store, "kept") == ["something kept"]
    with pytest.raises(Denied) as raised:
        add(store, "refused")
    assert not ENGINE_WORDS.search(raised.value.sentence)
    assert raised.value.facts["folder"] == disk


def test_a_read_only_store_can_be_read_and_says_at_once_why_it_cannot_be_written(
    open_local: OpenLocal, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_store(disk / "memory.db")
    make_read_only(disk)
    store = open_local("disk/memory.db")
    assert str(disk) in caplog.text
    check_that_it_can_only_be_read(store, disk)
    assert store.status().writable is False
    assert sorted(path.name for path in disk.iterdir()) == ["memory.db", "memory.db.key"]


def test_a_store_that_becomes_read_only_while_open_refuses_writes_and_can_be_read(
    open_local: OpenLocal, disk: Path
) -> None:
    make_store(disk / "memory.db")
    store = open_local("disk/memory.db")
    assert texts(store, "kept") == ["something kept"]
    store.close()
    make_read_only(disk)
    check_that_it_can_only_be_read(store, disk)


def test_a_write_that_the_disk_cannot_take_is_refused_and_leaves_the_store_whole(tmp_path: Path) -> None:
    script = """
        import resource, signal, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from tests.store.test_local import add
        from keepwell.store.local.engine import LocalStore
        from keepwell.wiring import real_world, uid_maker
        from keepwell.model.errors import KeepwellError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        world = real_world()
        store = LocalStore(Path(sys.argv[1]), device="x", world=world, new_uid=uid_maker(world))
        add(store, "first")
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        for number in range(10_000):
            try:
                add(store, f"number {number} " + "x" * 1500)
            except KeepwellError as error:
                print(number, error.code)
                break
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "memory.db"), str(Path(__file__).parents[2])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    acknowledged, code = done.stdout.split()
    assert code == "denied", done.stderr
    world = real_world()
    store = LocalStore(tmp_path / "memory.db", device="x", world=world, new_uid=uid_maker(world))
    with store.reading() as reader:
        assert reader.counts().lessons == int(acknowledged) + 1
    assert store.check() == ()
    store.close()


def test_while_another_process_holds_the_lock_reads_answer_and_writes_are_told_to_wait(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    store = open_local(options=Options(lock_deadline_ms=300))
    add(store, "kept")
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    assert texts(store, "kept") == ["kept"]
    with pytest.raises(Busy) as raised:
        add(store, "refused")
    assert raised.value.sentence == "the store is busy; retry later."
    assert "Nothing was changed" in raised.value.hint
    other.execute("ROLLBACK")
    assert add(store, "taken") == 2


def test_the_write_ahead_log_stays_bounded_in_a_long_life(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local(options=Options(synchronous="normal"))
    largest = 0
    for number in range(1_500):
        add(store, f"number {number} " + "x" * 500)
        if number % 50 == 0:
            largest = max(largest, (tmp_path / "memory.db-wal").stat().st_size)
    assert largest < 16 * 1024 * 1024
    assert store.status().wal_bytes is not None


def test_rows_missing_from_the_index_or_left_in_it_are_both_reported(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    for number in range(4):
        add(store, f"number {number}")
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("DELETE FROM memory_search_index WHERE rowid IN (1, 2)")
    other.execute(
        "INSERT INTO memory_search_index (rowid, memory_id, memory_text, evidence_text) VALUES (99, 99, 'x', '')"
    )
    found = store.check()
    assert len(found) == 3
    assert [fault for fault in found if "missing" in fault]
    assert [fault for fault in found if "belongs to no lesson" in fault]


def test_a_dropped_column_is_an_error_and_never_an_empty_answer(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    add(store, "kept")
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("PRAGMA writable_schema = ON")
    other.execute("ALTER TABLE evidence RENAME COLUMN description TO gone")
    with pytest.raises(KeepwellError) as raised:
        texts(store, "kept")
    assert not ENGINE_WORDS.search(raised.value.line)


def test_an_unwritable_store_is_denied_without_the_engines_words(open_local: OpenLocal) -> None:
    with pytest.raises(Denied) as raised:
        open_local("/proc/nowhere/memory.db")
    assert not ENGINE_WORDS.search(raised.value.line)
