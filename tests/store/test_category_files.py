"""The files of categories: what hands do to them, what readers leave alone, what they cost."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.conftest import ALL, PROJECT_A, Clock, OpenLocal, Uids

from keepwell.model import jsonform
from keepwell.model.errors import Corrupt, Denied, KeepwellError
from keepwell.model.lesson import Author
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.engine import LocalStore
from keepwell.wiring import real_world, uid_maker

Do = Callable[..., Any]


@pytest.fixture
def store(open_local: OpenLocal) -> LocalStore:
    return open_local()


@pytest.fixture
def do(store: LocalStore) -> Do:
    author = Author("assistant", "pi")
    caller = Caller(ALL, author, lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
    library = Library(store, caller, Uids(), lambda _path: True, "test")

    def one(command: str, **arguments: Any) -> Any:
        [operation] = [row for row in OPERATIONS if row.command == command]
        return library.perform(operation, arguments)

    return one


@pytest.fixture
def notes(do: Do, tmp_path: Path) -> Path:
    """The file of a category with two versions."""
    do("write", category="notes", data={"n": 1})
    do("write", category="notes", data={"n": 2})
    return tmp_path / "categories" / "notes.json"


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_a_file_holds_the_canonical_document_and_its_hash_is_the_documents(do: Do, notes: Path) -> None:
    data = notes.read_bytes()
    assert data == jsonform.canonical({"n": 2}).encode()
    assert jsonform.content_hash_of(data) == do("read", category="notes").hash


def test_an_edit_by_hand_is_served_marked_and_kept_as_a_version_before_it_is_replaced(do: Do, notes: Path) -> None:
    notes.write_text('{"n": 7, "by": "hand"}')
    found = do("read", category="notes")
    assert (found.data, found.edited_outside) == ({"n": 7, "by": "hand"}, True)
    saved = do("write", category="notes", data={"n": 8}, merge=True, expected_hash=found.hash)
    assert "edited outside" in saved.note
    assert do("read", category="notes").data == {"n": 8, "by": "hand"}
    versions = do("versions", category="notes").versions
    assert [row.action for row in versions] == ["written", "adopted", "written", "written"]
    assert do("versions", category="notes", version=versions[1].version).data == {"n": 7, "by": "hand"}


def test_another_layout_of_the_same_document_is_no_edit(do: Do, notes: Path) -> None:
    notes.write_text('{ "n" : 2 }\n')
    assert do("read", category="notes").edited_outside is None
    assert do("write", category="notes", data={"n": 2}).outcome == "unchanged"


def link(path: Path) -> None:
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**9)


SPOILERS: dict[str, Callable[[Path], object]] = {
    "broken JSON": lambda path: path.write_text("{"),
    "nothing": lambda path: path.write_text(""),
    "another encoding": lambda path: path.write_text('{"n": "é"}', encoding="utf-16"),
    "a key twice": lambda path: path.write_text('{"n": 1, "n": 2}'),
    "a number that cannot be kept": lambda path: path.write_text('{"n": 0.12345678901234567891}'),
    "a symbolic link": link,
    "a folder": folder,
    "a named pipe": pipe,
    "an endless file": endless,
}


@pytest.mark.parametrize("kind", SPOILERS)
def test_a_file_that_is_no_document_stops_reads_and_writes_with_a_remedy_and_loses_nothing(
    do: Do, store: LocalStore, notes: Path, kind: str
) -> None:
    SPOILERS[kind](notes)
    for command, arguments in (("read", {}), ("write", {"data": {"n": 3}}), ("delete", {})):
        with pytest.raises((Corrupt, Denied)) as raised:
            do(command, category="notes", **arguments)
        assert raised.value.hint
        assert str(notes) not in raised.value.line
    assert "notes" in {finding.subject for finding in store.findings()}
    if notes.is_dir():
        notes.rmdir()
    else:
        notes.unlink()
    do("doctor", fix=True)
    assert json.loads(notes.read_bytes()) == {"n": 2}
    assert do("doctor").healthy


def test_a_missing_file_is_told_and_written_again(do: Do, notes: Path) -> None:
    notes.unlink()
    assert do("read", category="notes").data == {"n": 2}
    assert [finding.code for finding in do("doctor").findings] == ["missing_file"]
    assert do("doctor", fix=True).healthy
    assert json.loads(notes.read_bytes()) == {"n": 2}


def test_a_file_that_no_category_has_can_be_read_and_is_taken_in_by_a_write(do: Do, notes: Path) -> None:
    notes.with_name("fresh.json").write_text('{"by": "hand"}')
    found = do("read", category="fresh")
    assert (found.data, found.version, found.edited_outside, found.updated_at) == ({"by": "hand"}, 0, True, None)
    do("write", category="fresh", data={"a": 1}, merge=True)
    assert do("read", category="fresh").data == {"by": "hand", "a": 1}
    assert len(do("versions", category="fresh").versions) == 2


def test_an_edit_of_a_logs_file_is_told_and_kept_when_the_file_is_written_again(
    do: Do, store: LocalStore, tmp_path: Path
) -> None:
    do("append", category="log", data={"n": 1})
    store.settle()
    file = tmp_path / "categories" / "log.json"
    file.write_text('{"mine": true}')
    assert do("read", category="log").edited_outside
    do("append", category="log", data={"n": 2})
    store.settle()
    assert [entry["data"] for entry in json.loads(file.read_bytes())["entries"]] == [{"n": 1}, {"n": 2}]
    assert '{"mine": true}' in {path.read_text() for path in (tmp_path / "backups").iterdir()}


LOSSES = {
    "half of the lessons": "DELETE FROM memory_search_index WHERE rowid % 2 = 0",
    "a lesson too many": "INSERT INTO memory_search_index (rowid, memory_text) VALUES (99, 'phantom')",
    "another text": "UPDATE memory_search_index SET memory_text = 'phantom' WHERE rowid = 1",
    "half of the documents": "DELETE FROM search_index WHERE id % 2 = 0",
    "a document too many": "INSERT INTO search_index (category_id, key_path, value_text) VALUES (1, 'x', 'phantom')",
    "the words of documents": "INSERT INTO search_fts (search_fts) VALUES ('delete-all')",
}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_index_that_was_damaged_from_outside_is_told_and_mended(
    do: Do, store: LocalStore, tmp_path: Path, loss: str
) -> None:
    for number in range(4):
        do("add", text=f"zebra {number}", evidence=[{"description": "seen"}])
        do("write", category=f"cat{number}", data={"a": "zebra", "b": {"c": number}})
        do("append", category="log", data={"saw": "zebra"})
    do("archive", id=3)
    do("delete", category="cat3")
    store.settle()
    assert do("doctor").healthy
    connection = apsw.Connection(str(tmp_path / "memory.db"))
    connection.execute(LOSSES[loss])
    connection.close()
    assert {finding.code for finding in do("doctor").findings} & {"index", "damaged"}
    assert do("doctor", fix=True).healthy
    found = do("search", query="zebra", limit=50).memories
    assert len(found) == 3 + 3 + 4
    assert do("search", query="phantom").memories == ()


def test_readers_change_no_file(do: Do, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "categories" / ".staged" / "left.notes.json").write_text("{}")
    before = listing(tmp_path / "categories") | listing(tmp_path / "backups")
    for _ in range(3):
        do("read", category="notes")
        do("list")
        do("versions", category="notes", version=1)
        do("context", categories=["notes"])
        do("doctor")
    assert listing(tmp_path / "categories") | listing(tmp_path / "backups") == before


def test_the_committed_document_is_served_while_its_file_waits_for_its_name(
    do: Do, store: LocalStore, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EIO, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(CategoryFiles, "promote", refuse)
        do("write", category="notes", data={"n": 3})
    assert json.loads(notes.read_bytes()) == {"n": 2}
    found = do("read", category="notes")
    assert (found.data, found.edited_outside) == ({"n": 3}, None)
    assert [finding.code for finding in store.findings()] == ["staged"]
    do("write", category="other", data={})
    assert json.loads(notes.read_bytes()) == {"n": 3}
    assert store.findings() == ()


@pytest.mark.parametrize("links", [True, False])
def test_weakness_13_backups_never_overwrite_one_another(
    do: Do, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:

        def refuse(*_args: object, **_options: object) -> None:
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
    for number in range(3, 8):
        do("write", category="notes", data={"n": number})
    do("delete", category="notes")
    do("write", category="notes", data={"n": 1})
    do("write", category="notes", data={"n": 9})
    kept = sorted(json.loads(path.read_bytes())["n"] for path in (tmp_path / "backups").iterdir())
    assert kept == [1, 1, 2, 3, 4, 5, 6, 7]


def test_old_backups_go_by_their_age_and_young_ones_stay(do: Do, notes: Path, tmp_path: Path, clock: Clock) -> None:
    clock.ms += 31 * 86_400_000
    do("write", category="notes", data={"n": 3})
    told = do("compact", dry_run=True)
    done = do("compact")
    assert (told.backups, done.backups) == (1, 1)
    assert [json.loads(path.read_bytes()) for path in (tmp_path / "backups").iterdir()] == [{"n": 2}]


def test_weakness_8_files_and_folders_are_private_whatever_the_umask_says(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        store = open_local("new/memory.db")
        author = Author("assistant", "pi")
        caller = Caller(ALL, author, lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
        library = Library(store, caller, Uids(), lambda _path: True, "test")
        [write] = [row for row in OPERATIONS if row.command == "write"]
        for number in range(2):
            library.perform(write, {"category": "notes", "data": {"n": number}})
    finally:
        os.umask(before)
    made = list((tmp_path / "new").rglob("*"))
    assert len(made) > 6
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def test_permissions_that_are_too_wide_are_told_and_narrowed(do: Do, notes: Path) -> None:
    notes.chmod(0o644)
    notes.parent.chmod(0o755)
    assert {finding.code for finding in do("doctor").findings} == {"too_open"}
    assert do("doctor", fix=True).healthy
    assert (notes.stat().st_mode & 0o777, notes.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_weakness_19_an_append_does_not_write_the_whole_log_again(
    do: Do, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written: list[int] = []
    real = CategoryFiles.stage

    def stage(self: CategoryFiles, transaction: str, name: str, text: str) -> Any:
        written.append(len(text))
        return real(self, transaction, name, text)

    monkeypatch.setattr(CategoryFiles, "stage", stage)
    for number in range(2_000):
        do("append", category="log", data={"n": number}, max_entries=100_000)
    # a file for each quarter of growth, not one for each entry
    assert len(written) < 15
    assert list((tmp_path / "backups").iterdir()) == []
    assert len(do("versions", category="log", limit=99).versions) == 1
    store.settle()
    assert len(json.loads((tmp_path / "categories" / "log.json").read_bytes())["entries"]) == 2_000


def test_what_a_killed_process_left_of_a_log_is_settled_by_the_next_one_that_writes(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    author = Author("assistant", "pi")
    caller = Caller(ALL, author, lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
    commands = {row.command: row for row in OPERATIONS}
    killed = open_local()
    uids = Uids()
    Library(killed, caller, uids, lambda _path: True, "test").perform(
        commands["append"], {"category": "log", "data": {"n": 1}}
    )
    killed._unsettled = False
    killed.close()
    file = tmp_path / "categories" / "log.json"
    assert json.loads(file.read_bytes())["entries"] == []
    world = real_world()
    other = LocalStore(tmp_path / "memory.db", device="laptop", world=world, new_uid=uid_maker(world))
    Library(other, caller, uid_maker(world), lambda _path: True, "test").perform(
        commands["write"], {"category": "other", "data": {}}
    )
    other.close()
    assert len(json.loads(file.read_bytes())["entries"]) == 1


def test_a_store_that_can_only_be_read_reads_and_refuses_writes(do: Do, notes: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    try:
        assert do("read", category="notes").data == {"n": 2}
        with pytest.raises(KeepwellError):
            do("write", category="notes", data={})
    finally:
        tmp_path.chmod(0o700)
