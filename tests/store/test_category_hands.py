"""What else befalls the files of categories: slow processes, taken names, a lost database, odd things in the way."""

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from tests.conftest import Clock, OpenLocal
from tests.store.test_category_files import Do, do, listing, notes, store
from tests.store.test_category_processes import start
from tests.store.test_faults import do as do_in
from tests.store.test_faults import open_store
from tests.store.test_local import disk, make_read_only

from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Conflict, Corrupt, Denied, Invalid
from keepwell.model.lesson import Author
from keepwell.store.local.category_check import findings
from keepwell.store.local.category_files import CategoryFiles, Staged
from keepwell.store.local.engine import LocalStore

__all__ = ["disk", "do", "notes", "store"]

HAND = '{"by": "hand"}'
DAY_MS = 86_400_000


@pytest.fixture
def another(store: LocalStore, tmp_path: Path) -> Iterator[LocalStore]:
    """The same store, open a second time."""
    second = open_store(tmp_path)
    yield second
    second.close()


def texts_in(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.is_file()]


def write_draft(name: str) -> Draft:
    return Draft(ChangeKind.CATEGORY_WRITTEN, name, None, Author("assistant"), Payload(text='{"a":1}'))


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "a\0b"])
def test_weakness_2_no_name_leads_the_engine_out_of_its_folder(store: LocalStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.json").write_text(HAND)
    (tmp_path / "categories").mkdir()
    with store.reading() as reader, pytest.raises(Invalid):
        reader.document(name)
    with pytest.raises(Invalid), store.writing() as writer:
        writer.append(write_draft(name))
    assert (tmp_path / "outside.json").read_text() == HAND
    assert list(tmp_path.rglob("*outside*")) == [tmp_path / "outside.json"]
    with store.reading() as reader:
        assert reader.counts().changes == 0


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """While it is empty, promotions wait in it until they are called; then they are done at once again."""
    waiting: list[Callable[[], None]] = []
    real = CategoryFiles.promote

    def promote(files: CategoryFiles, staged: Staged, *, predecessor: str | None) -> None:
        if waiting:
            real(files, staged, predecessor=predecessor)
        else:
            waiting.append(lambda: real(files, staged, predecessor=predecessor))

    monkeypatch.setattr(CategoryFiles, "promote", promote)
    return waiting


def test_who_is_slow_to_remove_a_file_leaves_the_one_that_another_process_made_meanwhile(
    do: Do, another: LocalStore, tmp_path: Path, late: list[Callable[[], None]]
) -> None:
    late.append(lambda: None)
    do("write", category="notes", data={"n": 1})
    late.clear()
    do("delete", category="notes")
    do_in(another, "write", {"category": "notes", "data": {"n": 2}})
    late[0]()
    assert json.loads((tmp_path / "categories" / "notes.json").read_bytes()) == {"n": 2}
    assert do("doctor").healthy


def test_who_is_slow_to_name_a_file_makes_no_backup_of_what_came_later(
    do: Do, another: LocalStore, tmp_path: Path, late: list[Callable[[], None]]
) -> None:
    late.append(lambda: None)
    do("write", category="notes", data={"n": 1})
    late.clear()
    do("write", category="notes", data={"n": 2})
    do_in(another, "write", {"category": "notes", "data": {"n": 3}})
    before = listing(tmp_path / "backups")
    late[0]()
    assert listing(tmp_path / "backups") == before
    assert sorted(json.loads(text)["n"] for text in texts_in(tmp_path / "backups")) == [1, 2]
    assert json.loads((tmp_path / "categories" / "notes.json").read_bytes()) == {"n": 3}


def test_a_file_of_a_later_instant_is_no_stranger(do: Do, open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    with store.reading() as reader:
        do("write", category="fresh", data={"n": 1})
        assert (tmp_path / "categories" / "fresh.json").exists()
        assert reader.document("fresh") is None
        assert reader.edits() == ()
        assert not list(findings(reader, CategoryFiles(tmp_path), tmp_path / "memory.db"))
    with store.reading() as reader:
        assert reader.document("fresh")


def test_a_file_that_was_made_again_after_this_instant_is_no_stranger(
    do: Do, notes: Path, open_local: OpenLocal
) -> None:
    do("delete", category="notes")
    store = open_local()
    with store.reading() as reader:
        do("write", category="notes", data={"n": 3})
        assert reader.document("notes") is None
        assert reader.edits("notes") == ()
    notes.with_name("stranger.json").write_text(HAND)
    with store.reading() as reader:
        assert [edit.name for edit in reader.edits()] == ["stranger"]


def test_a_file_that_was_removed_after_this_instant_is_not_missing(
    do: Do, notes: Path, open_local: OpenLocal, tmp_path: Path
) -> None:
    with open_local().reading() as reader:
        do("delete", category="notes")
        document = reader.document("notes")
        assert document
        assert document.data == {"n": 2}
        assert not document.edited_outside
        assert not list(findings(reader, CategoryFiles(tmp_path), tmp_path / "memory.db"))


def test_a_category_that_another_process_deletes_meanwhile_stops_no_repair(
    do: Do, notes: Path, store: LocalStore, another: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    do("write", category="other", data={})
    notes.unlink()
    notes.with_name("other.json").unlink()
    real = store.findings

    def findings_of_before() -> Any:
        found = real()
        with another.writing() as writer:
            writer.append(Draft(ChangeKind.CATEGORY_DELETED, "notes", None, Author("assistant"), Payload()))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(store, "findings", findings_of_before)
        assert store.mend() == ("The file of 'other' was written again.",)
    assert store.findings() == ()


def test_a_transaction_that_is_given_up_leaves_no_trace_among_the_files(
    notes: Path, store: LocalStore, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.glob("*/**/*.json")}

    def give_up() -> None:
        with store.writing() as writer:
            writer.append(write_draft("notes"))
            writer.append(write_draft("new"))
            assert len(list((notes.parent / ".staged").iterdir())) == 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give_up()
    assert {path: path.read_bytes() for path in tmp_path.glob("*/**/*.json")} == before
    assert list((notes.parent / ".staged").iterdir()) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EFBIG], ids=errno.errorcode.get)
def test_a_document_of_which_only_half_can_be_written_is_refused_and_nothing_of_it_stays(
    do: Do, notes: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Half:
        def __init__(self, file: Any) -> None:
            self._file = file

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_error: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            raise OSError(number, os.strerror(number))

    real = os.fdopen

    def fdopen(descriptor: int, mode: str = "r", *rest: Any, **more: Any) -> Any:
        file = real(descriptor, mode, *rest, **more)
        return Half(file) if mode == "wb" else file

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", fdopen)
        with pytest.raises(Denied):
            do("write", category="notes", data={"n": 3})
    assert list((notes.parent / ".staged").iterdir()) == []
    assert do("read", category="notes").data == {"n": 2}
    assert do("doctor").healthy


@pytest.mark.parametrize("links", [True, False])
def test_an_edit_between_a_failure_and_the_next_write_is_kept_beside_the_backup_whose_name_it_would_get(
    do: Do, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    real = os.replace

    def fail_for_documents(source: Any, target: Any) -> None:
        if str(target) == str(notes):
            raise OSError(errno.EIO, "injected")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_for_documents)
        do("write", category="notes", data={"n": 3})
    other = notes.with_name("draft of an editor")
    other.write_text(HAND)
    other.replace(notes)
    do("write", category="other", data={})
    assert json.loads(notes.read_bytes()) == {"n": 3}
    kept = [json.loads(text) for text in texts_in(tmp_path / "backups")]
    assert sorted(kept, key=str) == [{"by": "hand"}, {"n": 1}, {"n": 2}]
    assert CategoryFiles(tmp_path).erase_backups("notes") == 3


def test_backups_without_hard_links_are_private_whatever_the_umask_says_and_leave_no_drafts(
    do: Do, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: set[int] = set()
    real = os.replace

    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    def watch(source: Any, target: Any) -> None:
        modes.add(os.stat(source).st_mode & 0o777)  # noqa: PTH116 - the watched function is one of os
        real(source, target)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", watch)
    before = os.umask(0)
    try:
        do("write", category="notes", data={"n": 3})
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert len(texts_in(tmp_path / "backups")) == 2
    assert {path.suffix for path in (tmp_path / "backups").iterdir()} == {".json"}


def test_only_backups_of_ours_are_removed_by_age(do: Do, notes: Path, tmp_path: Path, clock: Clock) -> None:
    backups = tmp_path / "backups"
    strangers = ["report.1999.5.json", "notes.1999-01-01.1.json", "a.b.7", "2001-01-01T00-00-00.1.json"]
    for name in strangers:
        (backups / name).write_text(HAND)
    clock.ms += 90 * DAY_MS
    assert do("compact").backups == 1
    assert sorted(path.name for path in backups.iterdir()) == sorted(strangers)


def test_forgetting_a_category_removes_half_copies_of_its_backups_and_no_backup_of_another(
    do: Do, notes: Path, tmp_path: Path
) -> None:
    for name in ("note", "notes.more"):
        do("write", category=name, data={"other": 1})
        do("write", category=name, data={"other": 2})
    backups = tmp_path / "backups"
    [whole] = backups.glob("notes.2*.json")
    shutil.copyfile(whole, backups / f".{whole.name}.part")
    do("forget", what="notes", yes=True)
    assert [json.loads(text) for text in texts_in(backups)] == [{"other": 1}] * 2


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_weakness_8_staged_files_and_backups_are_private_whatever_the_umask_says(
    do: Do, store: LocalStore, tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        do("write", category="notes", data={"n": 1})
        do("write", category="notes", data={"n": 2})
        with store.writing() as writer:
            writer.append(write_draft("notes"))
            made = {path: path.stat().st_mode & 0o777 for path in tmp_path.glob("*/**/*")}
            writer.take_back()
    finally:
        os.umask(before)
    assert {mode for path, mode in made.items() if path.is_dir()} == {0o700}
    files = [mode for path, mode in made.items() if not path.is_dir()]
    assert len(files) == 3
    assert set(files) == {0o600}


def test_a_staging_folder_that_is_open_to_others_is_told_and_closed(do: Do, notes: Path) -> None:
    staging = notes.parent / ".staged"
    staging.chmod(0o777)
    assert [(found.code, found.subject) for found in do("doctor").findings] == [("too_open", str(staging))]
    assert do("doctor", fix=True).healthy
    assert staging.stat().st_mode & 0o777 == 0o700


def folder_with_a_file(path: Path) -> None:
    path.mkdir()
    (path / "precious").write_text("kept")


ODDITIES: dict[str, Callable[[Path], object]] = {
    "a folder": folder_with_a_file,
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to(path.with_name("nowhere")),
}


@pytest.mark.parametrize("kind", ODDITIES)
def test_what_lies_in_the_place_of_a_forgotten_document_is_put_aside_and_stops_no_later_write(
    do: Do, notes: Path, tmp_path: Path, kind: str
) -> None:
    notes.unlink()
    ODDITIES[kind](notes)
    do("forget", what="notes", yes=True)
    assert not notes.exists()
    do("write", category="other", data={"n": 1})
    do("write", category="notes", data={"n": 5})
    assert json.loads(notes.read_bytes()) == {"n": 5}
    assert do("doctor").healthy
    [aside] = (tmp_path / "backups").glob("*.aside")
    assert kind != "a folder" or (aside / "precious").read_text() == "kept"


@pytest.mark.parametrize("kind", ODDITIES)
def test_what_is_no_file_among_the_staged_ones_stops_nothing(do: Do, notes: Path, kind: str) -> None:
    ODDITIES[kind](notes.parent / ".staged" / "x-0.notes.json")
    notes.write_text(HAND)
    assert do("read", category="notes").edited_outside
    assert do("write", category="notes", data={"n": 4}).note
    assert json.loads(notes.read_bytes()) == {"n": 4}
    assert do("doctor", fix=True).healthy


def without_database(store: LocalStore, folder: Path) -> None:
    store.close()
    for path in folder.glob("memory.db*"):
        path.unlink()


def test_after_the_loss_of_the_database_its_files_are_still_read_marked_and_kept_by_writes(
    do: Do, notes: Path, store: LocalStore, open_local: OpenLocal, tmp_path: Path
) -> None:
    do("append", category="log", data={"n": 1})
    without_database(store, tmp_path)
    fresh = open_local()
    for name in ("notes", "log"):
        found = do_in(fresh, "read", {"category": name})
        assert (found.edited_outside, found.version) == (True, 0)
    assert do_in(fresh, "list", {}).total == 0
    assert {found.code for found in fresh.findings()} == {"unknown_file"}
    do_in(fresh, "write", {"category": "notes", "data": {"more": 1}, "merge": True})
    assert json.loads(notes.read_bytes()) == {"more": 1, "n": 2}
    with fresh.reading() as reader:
        versions = reader.versions("notes", limit=9, before=None)
        assert [version.action for version in versions] == ["written", "adopted"]
    with pytest.raises(Conflict):
        do_in(fresh, "append", {"category": "log", "data": {"n": 2}})
    assert len(do_in(fresh, "read", {"category": "log"}).data["entries"]) == 1


def test_a_database_that_is_gone_but_for_its_log_is_told_and_neither_replaced_nor_mixed_with_a_new_one(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    process = start(tmp_path / "memory.db", "p", "flip", 1_000_000)
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    database = tmp_path / "memory.db"
    assert (tmp_path / "memory.db-wal").stat().st_size > 0
    database.rename(tmp_path / "parked")
    before = listing(tmp_path)
    with pytest.raises(Corrupt, match="gone"):
        open_local()
    assert listing(tmp_path) == before
    (tmp_path / "parked").rename(database)
    with open_local().reading() as reader:
        assert len(reader.versions("flip", limit=999, before=None)) >= len(lines)


def test_an_older_database_marks_what_files_say_since_and_a_write_keeps_it(
    do: Do, notes: Path, store: LocalStore, tmp_path: Path
) -> None:
    do("write", category="going", data={"g": 1})
    store.backup(tmp_path / "older.db")
    do("write", category="notes", data={"n": 3})
    do("write", category="coming", data={"c": 1})
    do("delete", category="going")
    key = (tmp_path / "memory.db.key").read_bytes()
    without_database(store, tmp_path)
    (tmp_path / "older.db").rename(tmp_path / "memory.db")
    (tmp_path / "memory.db.key").write_bytes(key)
    (tmp_path / "memory.db.key").chmod(0o600)
    older = open_store(tmp_path)
    found = {name: do_in(older, "read", {"category": name}) for name in ("notes", "coming", "going")}
    assert {name: read.data for name, read in found.items()} == {
        "notes": {"n": 3},
        "coming": {"c": 1},
        "going": {"g": 1},
    }
    assert {name for name, read in found.items() if read.edited_outside} == {"notes", "coming"}
    codes = {(finding.code, finding.subject.strip("'")) for finding in older.findings()}
    assert codes == {("edited_outside", "notes"), ("unknown_file", "coming"), ("missing_file", "going")}
    do_in(older, "write", {"category": "notes", "data": {"n": 4}})
    with older.reading() as reader:
        kept = [reader.version("notes", version.id) for version in reader.versions("notes", limit=2, before=None)]
    older.close()
    assert [json.loads(version.text or "") for version in kept if version] == [{"n": 4}, {"n": 3}]


def test_a_store_on_a_read_only_disk_serves_documents_edits_and_logs_and_refuses_writes(
    open_local: OpenLocal, disk: Path
) -> None:
    writable = open_local("disk/memory.db")
    do_in(writable, "write", {"category": "notes", "data": {"n": 1}})
    do_in(writable, "append", {"category": "log", "data": {"n": 1}})
    writable.close()
    (disk / "categories" / "notes.json").write_text(HAND)
    make_read_only(disk)
    before = listing(disk)
    reading = open_local("disk/memory.db")
    read = do_in(reading, "read", {"category": "notes"})
    assert (read.data, read.edited_outside) == ({"by": "hand"}, True)
    assert len(do_in(reading, "read", {"category": "log"}).data["entries"]) == 1
    assert {found.code for found in reading.findings()} == {"edited_outside"}
    refused: list[tuple[str, dict[str, Any]]] = [
        ("write", {"category": "notes", "data": {}}),
        ("append", {"category": "log", "data": {}}),
        ("delete", {"category": "notes"}),
        ("doctor", {"fix": True}),
    ]
    for command, arguments in refused:
        with pytest.raises(Denied) as raised:
            do_in(reading, command, arguments)
        assert raised.value.hint
    assert listing(disk) == before


def test_what_killed_writers_committed_is_read_on_a_disk_that_became_read_only(
    open_local: OpenLocal, disk: Path
) -> None:
    process = start(disk / "memory.db", "p", "merge", 1_000_000)
    assert process.stdout
    said = [json.loads(process.stdout.readline())["key"] for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    make_read_only(disk)
    before = listing(disk)
    found = do_in(open_local("disk/memory.db"), "read", {"category": "shared"})
    assert found.edited_outside is None
    assert set(said) <= found.data.keys()
    assert listing(disk) == before
