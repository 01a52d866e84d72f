"""Versions, reverting and deltas, on each engine."""

import copy
from typing import Any

import pytest
from tests.conftest import Clock, MakeLibrary, OpenLocal
from tests.model.test_jsondiff import applied
from tests.operations.test_categories import DAY, UNKNOWN, do, entries, read, write

from keepwell.model import jsonform
from keepwell.model.access import AccessList
from keepwell.model.errors import Conflict, Denied, Invalid, NotFound
from keepwell.model.jsondiff import Difference, same
from keepwell.operations.library import Library
from keepwell.store.local.engine import Options
from keepwell.surfaces.render import fits

STATES: list[dict[str, Any]] = [
    {"a": 1, "list": [1, 2, 3, {"x": None}], "text": "x" * 200},
    {"a": 1.0, "list": [1, [2]], "text": "x" * 200, "b/c": {"~": 0}},
    {"list": {"0": 1}, "text": "x" * 200, "b/c": {"~": -0.0}},
    {},
    {"a": None, "text": "y"},
]


def versions(library: Library, category: str = "notes", **more: Any) -> Any:
    return do(library, "versions", category=category, **more)


def delta(library: Library, since: str, category: str = "notes") -> Any:
    return do(library, "delta", category=category, since_hash=since)


def patched(old: Any, changes: Any) -> Any:
    return applied(copy.deepcopy(old), Difference(changes.added, changes.removed, changes.changed))


@pytest.mark.parametrize("older", range(len(STATES)))
@pytest.mark.parametrize("newer", range(len(STATES)))
def test_what_changed_between_any_two_versions_leads_from_the_one_to_the_other(
    library: MakeLibrary, older: int, newer: int
) -> None:
    numbers = [write(library(), state).version for state in STATES]
    found = versions(library(), version=numbers[newer], against=numbers[older])
    assert same(patched(STATES[older], found.changes), STATES[newer])
    assert found.data is None


@pytest.mark.parametrize("known", range(len(STATES)))
def test_a_delta_since_any_known_hash_leads_to_what_is_there_now(library: MakeLibrary, known: int) -> None:
    hashes = [write(library(), state).hash for state in STATES]
    told = delta(library(), hashes[known])
    assert told.status == ("unchanged" if known == len(STATES) - 1 else "replaced")
    write(library(), STATES[1] | {"more": 1})
    told = delta(library(), hashes[known])
    now = patched(STATES[known], told.changes) if told.status == "changed" else told.data
    assert same(now, STATES[1] | {"more": 1})
    assert told.hash == do(library(), "read", category="notes").hash


def test_a_delta_is_never_longer_than_the_document(library: MakeLibrary) -> None:
    known = write(library(), {f"key {number}": number for number in range(50)}).hash
    write(library(), {"n": 1})
    told = delta(library(), known)
    assert (told.status, told.data, told.changes) == ("replaced", {"n": 1}, None)


def test_an_unchanged_delta_holds_neither_document_nor_changes(library: MakeLibrary) -> None:
    known = write(library(), {"text": "x" * 1_000}).hash
    told = delta(library(), known)
    assert (told.status, told.data, told.changes, told.hash) == ("unchanged", None, None, known)


@pytest.mark.parametrize("asked", ["nonsense", "absent", UNKNOWN])
def test_a_hash_that_nobody_knows_gets_the_whole_document(library: MakeLibrary, asked: str) -> None:
    write(library(), {"a": 1})
    assert (delta(library(), asked).status, delta(library(), asked).data) == ("replaced", {"a": 1})


def test_a_hash_of_another_category_is_not_known_to_this_one(library: MakeLibrary) -> None:
    other = write(library(), {"a": 1, "text": "x" * 100}, category="other").hash
    write(library(), {"a": 2, "text": "x" * 100})
    assert delta(library(), other).status == "replaced"


def test_a_delta_tells_a_deletion_by_its_time_and_a_return_by_its_document(library: MakeLibrary, clock: Clock) -> None:
    known = write(library(), {"a": 1}).hash
    clock.ms += DAY
    removed = do(library(), "delete", category="notes")
    told = delta(library(), known)
    assert (told.status, told.deleted_at, told.updated_by, told.data) == ("deleted", clock.ms, "laptop", None)
    do(library(), "revert", category="notes", version=removed.version)
    assert delta(library(), known).status == "unchanged"


def test_a_delta_of_a_log_gives_only_new_entries_also_after_its_own_deletion_and_return(library: MakeLibrary) -> None:
    for number in range(3):
        do(library(), "append", category="log", data={"n": number, "text": "x" * 50})
    known = do(library(), "read", category="log").hash
    removed = do(library(), "delete", category="log")
    do(library(), "revert", category="log", version=removed.version)
    assert delta(library(), known, "log").status == "unchanged"
    do(library(), "append", category="log", data={"n": 3})
    changes = delta(library(), known, "log").changes
    assert [entry["data"] for entry in changes.added.values()] == [{"n": 3}]
    assert (changes.removed, changes.changed) == ((), {})


def test_a_delta_of_a_log_that_has_dropped_what_was_known_is_the_whole_log(library: MakeLibrary) -> None:
    known = do(library(), "append", category="log", data={"n": 0}, max_entries=2).id
    seen = do(library(), "read", category="log").hash
    for number in (1, 2):
        do(library(), "append", category="log", data={"n": number})
    told = delta(library(), seen, "log")
    assert (known, told.status) == (0, "replaced")
    assert [entry["id"] for entry in told.data["entries"]] == [1, 2]


def test_a_delta_too_long_for_an_answer_says_where_to_read_it(library: MakeLibrary) -> None:
    write(library(), {"text": "x" * 200_000})
    told = delta(library(fits=fits), UNKNOWN)
    assert fits(told)
    assert (told.status, told.data) == ("replaced", None)
    assert "memory_read" in told.note


def test_a_version_too_long_for_an_answer_is_told_without_its_text(library: MakeLibrary) -> None:
    number = write(library(), {"text": "x" * 200_000}).version
    found = versions(library(fits=fits), version=number)
    assert fits(found)
    assert (found.truncated, found.data, found.versions[0].version) == (True, None, number)


def test_a_list_of_versions_too_long_for_an_answer_goes_on_where_it_ended(library: MakeLibrary) -> None:
    made = [write(library(), {"n": number}, reason="because " * 100).version for number in range(90)]
    seen: list[int] = []
    more: dict[str, Any] = {}
    while True:
        page = versions(library(fits=fits), limit=1_000, **more)
        assert fits(page)
        seen += [row.version for row in page.versions]
        if page.next is None:
            break
        more = {"before": page.next}
    assert len(seen) > len(page.versions)
    assert seen == made[::-1]


def test_a_reverted_version_is_a_new_one_that_names_what_it_replaced(library: MakeLibrary) -> None:
    first, second = write(library(), {"n": 1}), write(library(), {"n": 2})
    back = do(library(), "revert", category="notes", version=first.version, expected_hash=second.hash)
    assert (back.outcome, back.hash, back.previous_hash) == ("restored", first.hash, second.hash)
    newest = versions(library()).versions[0]
    assert (newest.version, newest.action, newest.previous_hash) == (back.version, "restored", second.hash)
    assert back.version > second.version
    assert f"version {first.version}" in newest.reason


def test_reverting_to_what_is_there_makes_no_version(library: MakeLibrary) -> None:
    only = write(library(), {"n": 1})
    assert do(library(), "revert", category="notes", version=only.version).outcome == "unchanged"
    assert len(versions(library()).versions) == 1


@pytest.mark.parametrize("back_to", ["the deletion", "an older version"])
def test_a_deletion_is_undone_by_either_kind_of_version(library: MakeLibrary, back_to: str) -> None:
    first = write(library(), {"n": 1})
    write(library(), {"n": 2})
    removed = do(library(), "delete", category="notes")
    number = removed.version if back_to == "the deletion" else first.version
    back = do(library(), "revert", category="notes", version=number, expected_hash="absent")
    assert (back.outcome, back.previous_hash) == ("restored", None)
    assert read(library()) == ({"n": 2} if back_to == "the deletion" else {"n": 1})


def test_a_deleted_log_comes_back_whole(library: MakeLibrary) -> None:
    for number in range(3):
        do(library(), "append", category="log", data={"n": number}, max_entries=5)
    before = do(library(), "read", category="log")
    removed = do(library(), "delete", category="log")
    do(library(), "revert", category="log", version=removed.version)
    after = do(library(), "read", category="log")
    assert (after.data, after.hash) == (before.data, before.hash)
    assert do(library(), "append", category="log", data={}).total_entries == 4


def test_weakness_14_a_deletion_can_be_undone_even_where_one_version_is_kept(
    library: MakeLibrary, open_local: OpenLocal
) -> None:
    plain = library()
    store = open_local("one.db", options=Options(max_versions=1))
    here = Library(store, plain.caller, plain.new_uid, plain.folder_exists, "test")
    write(here, {"n": 1})
    removed = do(here, "delete", category="notes")
    do(here, "revert", category="notes", version=removed.version)
    assert read(here) == {"n": 1}


def test_a_live_log_takes_no_older_state_and_a_document_no_state_of_a_log(library: MakeLibrary) -> None:
    do(library(), "append", category="x", data={"n": 1})
    as_log = do(library(), "delete", category="x").version
    document = write(library(), {"a": 1}, category="x").version
    with pytest.raises(Conflict, match="only grows") as raised:
        do(library(), "revert", category="x", version=as_log)
    assert raised.value.hint == "Delete it first."
    assert read(library(), "x") == {"a": 1}
    do(library(), "delete", category="x")
    do(library(), "revert", category="x", version=as_log)
    with pytest.raises(Conflict, match="only grows"):
        do(library(), "revert", category="x", version=document)
    assert [entry["data"] for entry in entries(library(), "x")] == [{"n": 1}]


@pytest.mark.parametrize("expected", ["abc", "A" * 64, "none"])
@pytest.mark.parametrize("command", ["delete", "revert"])
def test_an_expected_hash_of_another_form_is_refused_by_its_name_at_every_entry_point(
    library: MakeLibrary, command: str, expected: str
) -> None:
    number = write(library(), {"a": 1}).version
    more = {"version": number} if command == "revert" else {}
    with pytest.raises(Invalid, match="expected_hash"):
        do(library(), command, category="notes", expected_hash=expected, **more)
    assert read(library()) == {"a": 1}


def test_absent_is_no_hash_of_a_category_that_is_there_and_the_only_one_of_one_that_is_not(
    library: MakeLibrary,
) -> None:
    first = write(library(), {"a": 1}, expected_hash="absent")
    removed = do(library(), "delete", category="notes", expected_hash=first.hash)
    with pytest.raises(Conflict, match="does not exist"):
        do(library(), "revert", category="notes", version=removed.version, expected_hash=first.hash)
    do(library(), "revert", category="notes", version=removed.version, expected_hash="absent")
    with pytest.raises(Conflict, match=first.hash):
        do(library(), "delete", category="notes", expected_hash="absent")
    assert read(library()) == {"a": 1}


@pytest.mark.parametrize("asked", [{"version": 99}, {"version": 1, "against": 99}])
def test_a_version_that_is_not_there_is_told_by_the_parameter(library: MakeLibrary, asked: dict[str, Any]) -> None:
    assert write(library(), {"a": 1}).version == 1
    with pytest.raises(NotFound, match=f"{list(asked)[-1]} 99"):
        versions(library(), **asked)


def test_a_version_of_one_category_is_none_of_another(library: MakeLibrary) -> None:
    mine = write(library(), {"a": 1}).version
    write(library(), {"b": 1}, category="other")
    with pytest.raises(NotFound, match="no such version"):
        versions(library(), "other", version=mine)
    with pytest.raises(NotFound, match="no such version"):
        do(library(), "revert", category="other", version=mine)
    assert read(library(), "other") == {"b": 1}


def test_against_alone_is_refused(library: MakeLibrary) -> None:
    write(library(), {"a": 1})
    with pytest.raises(Invalid, match="against needs version"):
        versions(library(), against=1)


def test_every_version_says_who_made_it_when_and_on_what(library: MakeLibrary, clock: Clock) -> None:
    first = write(library(), {"n": 1}, reason="the first")
    clock.ms += 5
    second = write(library(), {"n": 2})
    newest, oldest = versions(library()).versions
    assert (newest.hash, newest.previous_hash, newest.created_at) == (second.hash, first.hash, clock.ms)
    assert (oldest.previous_hash, oldest.reason, oldest.created_at, oldest.actor) == (
        None,
        "the first",
        clock.ms - 5,
        "laptop",
    )
    assert newest.size_bytes == len(jsonform.canonical({"n": 2}))


def test_a_denied_revert_of_a_deleted_category_leaves_it_deleted(library: MakeLibrary) -> None:
    write(library(), {"a": 1}, category="projects")
    removed = do(library(), "delete", category="projects")
    plain = library()
    rules = AccessList("laptop", ("desk",), ("laptop",), configured=True)
    mine = Library(plain.store, plain.caller, plain.new_uid, plain.folder_exists, "test", access=rules)
    with pytest.raises(Denied, match="base_requires_admin"):
        do(mine, "revert", category="projects", version=removed.version)
    with pytest.raises(NotFound, match="was deleted"):
        read(mine, "projects")
