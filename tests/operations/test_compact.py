"""Removing what the bounds do not keep: first told, then done."""

from typing import Any

import pytest
from tests.conftest import Clock, MakeLibrary, OpenLocal
from tests.operations.test_categories import DAY, do, entries, read, write

from keepwell.model.access import AccessList
from keepwell.model.errors import Conflict, Denied, Invalid, NotFound
from keepwell.operations.category_replies import Compaction
from keepwell.operations.library import Library, Permissions
from keepwell.store.port import Store


@pytest.fixture
def store(open_local: OpenLocal) -> Store:
    """The local engine alone: the reference engine keeps everything."""
    return open_local()


@pytest.fixture
def old(library: MakeLibrary, clock: Clock) -> Library:
    """A store with six versions of one category, two of another, and a log with entries past their age."""
    here = library()
    for number in range(6):
        write(here, {"n": number})
    for number in range(2):
        write(here, {"n": number}, category="two")
    for number in range(3):
        do(here, "append", category="log", data={"n": number, "word": "zebra"}, max_age_days=1)
    clock.ms += 2 * DAY
    return here


def told(found: Compaction) -> dict[str, tuple[int, int]]:
    return {row.category: (row.versions, row.entries) for row in found.categories}


def state(library: Library) -> tuple[Any, ...]:
    names = [row.name for row in do(library, "list").categories]
    versions = [do(library, "versions", category=name, limit=100).versions for name in names]
    return tuple(versions), tuple(do(library, "read", category=name) for name in names)


@pytest.mark.parametrize("asked", [{}, {"keep_versions": 1}, {"keep_versions": 3}, {"category": "log"}])
def test_weakness_42_a_dry_run_tells_what_the_real_one_then_does_and_changes_nothing(
    old: Library, asked: dict[str, Any]
) -> None:
    before = state(old)
    dry = do(old, "compact", dry_run=True, **asked)
    assert (dry.dry_run, state(old)) == (True, before)
    done = do(old, "compact", **asked)
    assert told(dry) == told(done)
    assert told(done)["log"] == (0, 3)
    assert state(old) != before
    assert told(do(old, "compact", **asked)) == {}
    assert old.store.check() == ()


def test_weakness_42_keep_versions_and_category_are_heeded(old: Library) -> None:
    assert told(do(old, "compact", category="notes", keep_versions=2)) == {"notes": (4, 0)}
    assert [len(do(old, "versions", category=name).versions) for name in ("notes", "two")] == [2, 2]
    assert read(old) == {"n": 5}


def test_old_entries_leave_the_log_and_the_index_and_ids_go_on(old: Library) -> None:
    assert len(do(old, "search", query="zebra", limit=50).memories) == 3
    do(old, "compact", category="log")
    assert entries(old) == []
    assert do(old, "search", query="zebra").memories == ()
    assert do(old, "append", category="log", data={}).id == 3


def test_the_newest_version_stays_whatever_is_asked(old: Library) -> None:
    do(old, "compact", keep_versions=1)
    [left] = do(old, "versions", category="notes").versions
    assert do(old, "versions", category="notes", version=left.version).data == {"n": 5}
    with pytest.raises(Invalid, match="keep_versions"):
        do(old, "compact", keep_versions=0)


def test_a_deleted_category_is_compacted_by_its_name_and_can_still_be_brought_back(old: Library) -> None:
    removed = do(old, "delete", category="notes")
    assert "notes" not in told(do(old, "compact", keep_versions=1))
    assert told(do(old, "compact", category="notes", keep_versions=1)) == {"notes": (6, 0)}
    do(old, "revert", category="notes", version=removed.version)
    assert read(old) == {"n": 5}


@pytest.mark.parametrize("name", ["never", "NOTES"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_compacting_what_is_not_there_is_an_error(old: Library, name: str, dry_run: bool) -> None:
    with pytest.raises((NotFound, Conflict), match="there is no category"):
        do(old, "compact", category=name, dry_run=dry_run)


def test_the_access_list_skips_what_is_not_this_devices_and_denies_it_by_name(old: Library) -> None:
    rules = AccessList("laptop", ("desk",), ("laptop", "log"), configured=True)
    mine = Library(old.store, old.caller, old.new_uid, old.folder_exists, "test", access=rules)
    write(old, {"n": 1}, category="laptop")
    write(old, {"n": 2}, category="laptop")
    found = do(mine, "compact", keep_versions=1)
    assert (told(found), found.skipped) == ({"laptop": (1, 0)}, ("log", "notes", "two"))
    with pytest.raises(Denied, match="not_authorized"):
        do(mine, "compact", category="notes")
    assert len(do(old, "versions", category="notes").versions) == 6


def test_a_launch_that_may_not_write_may_not_compact(old: Library, library: MakeLibrary) -> None:
    with pytest.raises(Denied, match="may not change"):
        do(library(permissions=Permissions()), "compact", keep_versions=1)
    assert len(do(old, "versions", category="notes").versions) == 6
