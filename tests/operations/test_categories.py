"""Categories and logs through the gate, on each engine."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PROJECT_A, PROJECT_B, Clock, MakeLibrary, OpenLocal

from keepwell.model import jsonform
from keepwell.model.access import AccessList
from keepwell.model.errors import Conflict, Denied, Invalid, KeepwellError, NotFound
from keepwell.operations import OPERATIONS, tool_named
from keepwell.operations.library import Library, Permissions
from keepwell.operations.table import Name
from keepwell.surfaces.render import fits

DAY = 86_400_000
UNKNOWN = "0" * 64


def do(library: Library, name: str, **arguments: Any) -> Any:
    [operation] = [row for row in OPERATIONS if name in (row.tool, row.command)]
    return library.perform(operation, arguments)


def read(library: Library, category: str = "notes") -> Any:
    return do(library, "read", category=category).data


def write(library: Library, data: dict[str, Any], category: str = "notes", **more: Any) -> Any:
    return do(library, "write", category=category, data=data, **more)


def entries(library: Library, category: str = "log") -> list[Any]:
    found: list[Any] = read(library, category)["entries"]
    return found


def test_what_is_written_is_read_with_the_hash_of_its_canonical_text(library: MakeLibrary) -> None:
    saved = write(library(), {"b": [1, 2.5, None], "a": {"ü": True}})
    found = do(library(), "read", category="notes")
    assert found.data == {"a": {"ü": True}, "b": [1, 2.5, None]}
    assert found.hash == saved.hash == jsonform.content_hash(jsonform.canonical(found.data))
    assert (saved.outcome, saved.kind, found.size_bytes) == ("created", "memory", saved.size_bytes)


def test_categories_are_the_same_in_every_project(library: MakeLibrary) -> None:
    write(library(PROJECT_A), {"a": 1})
    assert read(library(PROJECT_B)) == {"a": 1}


def test_the_same_document_makes_no_new_version(library: MakeLibrary) -> None:
    first = write(library(), {"a": 1, "b": 2})
    again = write(library(), {"b": 2, "a": 1})
    assert (again.outcome, again.version) == ("unchanged", first.version)
    assert write(library(), {"a": 1}, merge=True).outcome == "unchanged"
    assert len(do(library(), "versions", category="notes").versions) == 1


def test_weakness_17_a_read_keeps_the_document_apart_so_that_writing_it_back_adds_nothing(library: MakeLibrary) -> None:
    own = {"success": False, "category": "mine", "_meta": {"hash": "mine"}}
    write(library(), own)
    assert read(library()) == own
    assert write(library(), read(library())).outcome == "unchanged"


def test_a_merge_sets_keys_and_null_takes_one_away_but_replacing_keeps_a_null(library: MakeLibrary) -> None:
    write(library(), {"a": 1, "b": {"deep": None}})
    write(library(), {"a": None, "c": 3}, merge=True)
    assert read(library()) == {"b": {"deep": None}, "c": 3}
    write(library(), {"a": None})
    assert read(library()) == {"a": None}


def test_a_merge_into_nothing_starts_with_nothing(library: MakeLibrary) -> None:
    assert write(library(), {"a": 1, "b": None}, merge=True).outcome == "created"
    assert read(library()) == {"a": 1}


NAMED = [row for row in OPERATIONS for parameter in row.parameters if isinstance(parameter.kind, Name)]


UNFIT = ["../notes", "a/b", "a\\b", "", ".x", "x.", " x", "NUL", "com1.txt", "a\0b", "a\nb", "a\u200bb", "n" * 129]


@pytest.mark.parametrize("name", UNFIT, ids=ascii)
@pytest.mark.parametrize("operation", NAMED, ids=lambda row: row.name)
def test_weakness_2_one_rule_for_names_holds_at_every_entry_point(
    library: MakeLibrary, operation: Any, name: str
) -> None:
    parameter = next(parameter.name for parameter in operation.parameters if isinstance(parameter.kind, Name))
    others = {"query": "x", "data": {}, "since_hash": UNKNOWN, "version": 1}
    needed = {p.name: others[p.name] for p in operation.parameters if p.required and p.name in others}
    with pytest.raises(Invalid, match=parameter):
        library().perform(operation, needed | {parameter: name})


@pytest.mark.parametrize("twin", ["Notes", "NOTES", "\uff4eotes", "note\u017f"])
def test_weakness_47_names_equal_after_folding_or_normalising_cannot_both_exist(
    library: MakeLibrary, twin: str
) -> None:
    write(library(), {"a": 1})
    with pytest.raises(Conflict, match="'notes'"):
        write(library(), {"b": 2}, category=twin)
    with pytest.raises(Conflict):
        do(library(), "append", category=twin, data={})
    assert do(library(), "list").total == 1


@pytest.mark.parametrize("command", ["read", "write", "append", "delete", "delta", "versions", "revert", "compact"])
def test_weakness_47_the_other_spelling_of_a_name_reaches_nothing_at_any_entry_point(
    library: MakeLibrary, command: str
) -> None:
    write(library(), {"a": 1})
    more: dict[str, dict[str, Any]] = {
        "write": {"data": {}},
        "append": {"data": {}},
        "delta": {"since_hash": UNKNOWN},
        "revert": {"version": 1},
    }
    with pytest.raises((Conflict, NotFound)):
        do(library(), command, category="Notes", **more.get(command, {}))
    assert read(library()) == {"a": 1}
    assert len(do(library(), "versions", category="notes").versions) == 1


@pytest.mark.parametrize("name", UNFIT, ids=ascii)
def test_one_rule_for_names_holds_within_a_list_of_names(library: MakeLibrary, name: str) -> None:
    with pytest.raises(Invalid, match=r"categories\[1\]"):
        do(library(), "context", categories=["notes", name])


def test_a_read_too_long_for_an_answer_keeps_its_short_keys_and_names_what_it_left_out(library: MakeLibrary) -> None:
    write(library(), {"a": 1, "long": "x" * 80_000, "longer": "y" * 90_000, "z": 2})
    found = do(library(fits=fits), "read", category="notes")
    assert fits(found)
    assert (found.data, found.truncated, found.omitted) == ({"a": 1, "z": 2}, True, ("longer", "long"))
    assert do(library(), "read", category="notes", fields="longer").data == {"longer": "y" * 90_000}


def test_a_read_of_a_document_with_very_many_keys_is_bounded_and_counts_what_it_left_out(
    library: MakeLibrary,
) -> None:
    data = {f"key {number:05}" + "k" * (number % 100): "x" * 20 for number in range(10_000)}
    saved = write(library(), data)
    found = do(library(fits=fits), "read", category="notes")
    assert fits(found)
    assert (found.hash, found.size_bytes) == (saved.hash, saved.size_bytes)
    assert all(data[key] == value for key, value in found.data.items())
    *named, more = found.omitted
    assert more == f"{len(data) - len(found.data) - len(named):,} more"
    assert not set(named) & set(found.data)
    # nothing is left out without need
    assert not fits(replace(found, data=found.data | {key: data[key] for key in list(data)[:200]}, omitted=()))


def test_a_read_of_a_log_too_long_for_an_answer_keeps_its_newest_entries(library: MakeLibrary) -> None:
    for number in range(20):
        do(library(), "append", category="log", data={"n": number, "text": "x" * 10_000})
    found = do(library(fits=fits), "read", category="log")
    assert fits(found)
    numbers = [entry["id"] for entry in found.data["entries"]]
    assert numbers == list(range(numbers[0], 20))
    assert found.omitted == (f"entries before id {numbers[0]}",)
    assert do(library(), "read", category="log").truncated is None


@pytest.mark.parametrize("data", [{"k" * 200_000: 1}, {"k" * 200_000: "x" * 200_000, "a": 1}], ids=["key", "both"])
def test_a_key_too_long_for_an_answer_is_cut_where_it_is_named(library: MakeLibrary, data: dict[str, Any]) -> None:
    write(library(), data)
    found = do(library(fits=fits), "read", category="notes")
    assert fits(found)
    assert found.omitted[0].startswith("kkk")
    assert found.data == {key: value for key, value in data.items() if key == "a"}


def test_expected_hash_lets_a_write_through_only_on_what_was_read(library: MakeLibrary) -> None:
    first = write(library(), {"a": 1}, expected_hash="absent")
    second = write(library(), {"a": 2}, expected_hash=first.hash)
    for stale in (first.hash, "absent", UNKNOWN):
        with pytest.raises(Conflict, match=second.hash):
            write(library(), {"a": 3}, expected_hash=stale)
        with pytest.raises(Conflict, match=second.hash):
            do(library(), "delete", category="notes", expected_hash=stale)
        with pytest.raises(Conflict, match=second.hash):
            do(library(), "revert", category="notes", version=first.version, expected_hash=stale)
    assert read(library()) == {"a": 2}


def test_weakness_12_expected_hash_holds_for_a_category_that_is_not_there(library: MakeLibrary) -> None:
    with pytest.raises(Conflict, match="does not exist"):
        write(library(), {"a": 1}, expected_hash=UNKNOWN)
    gone = write(library(), {"a": 1})
    do(library(), "delete", category="notes")
    with pytest.raises(Conflict, match="does not exist"):
        write(library(), {"a": 2}, expected_hash=gone.hash)
    assert write(library(), {"a": 2}, expected_hash="absent").outcome == "created"


@pytest.mark.parametrize("expected", ["abc", "A" * 64, "none"])
def test_an_expected_hash_of_another_form_is_refused_by_its_name(library: MakeLibrary, expected: str) -> None:
    with pytest.raises(Invalid, match="expected_hash"):
        write(library(), {"a": 1}, expected_hash=expected)


def test_every_version_can_be_read_compared_and_brought_back(library: MakeLibrary) -> None:
    states: list[dict[str, Any]] = [{"a": 1}, {"a": 2, "b": [1]}, {"b": [1, 2]}]
    made = [write(library(), state, reason=f"step {number}").version for number, state in enumerate(states)]
    listed = do(library(), "versions", category="notes").versions
    assert [(row.version, row.reason) for row in listed] == [
        (version, f"step {number}") for number, version in reversed(list(enumerate(made)))
    ]
    for version, state in zip(made, states, strict=True):
        assert do(library(), "versions", category="notes", version=version).data == state
    changes = do(library(), "versions", category="notes", version=made[2], against=made[1]).changes
    assert (changes.added, changes.removed, changes.changed) == ({"/b/1": 2}, ("/a",), {})
    restored = do(library(), "revert", category="notes", version=made[0])
    assert (restored.outcome, read(library())) == ("restored", {"a": 1})
    assert do(library(), "versions", category="notes", version=made[2]).data == states[2]


def test_versions_are_listed_page_by_page(library: MakeLibrary) -> None:
    made = [write(library(), {"n": number}).version for number in range(7)]
    seen: list[int] = []
    more: dict[str, int] = {}
    while True:
        page = do(library(), "versions", category="notes", limit=3, **more)
        seen += [row.version for row in page.versions]
        if page.next is None:
            break
        more = {"before": page.next}
    assert seen == made[::-1]


def test_weakness_14_a_deletion_keeps_the_history_and_can_be_undone(library: MakeLibrary) -> None:
    write(library(), {"a": 1})
    write(library(), {"a": 2})
    removed = do(library(), "delete", category="notes", reason="done")
    with pytest.raises(NotFound, match="was deleted"):
        read(library())
    history = do(library(), "versions", category="notes")
    assert [row.action for row in history.versions] == ["deleted", "written", "written"]
    assert history.deleted_at == removed.deleted_at
    do(library(), "revert", category="notes", version=removed.version)
    assert read(library()) == {"a": 2}


def test_weakness_15_deleting_what_is_not_there_is_an_error(library: MakeLibrary) -> None:
    with pytest.raises(NotFound, match="there is no category 'notes'"):
        do(library(), "delete", category="notes")
    write(library(), {"a": 1})
    do(library(), "delete", category="notes")
    with pytest.raises(NotFound, match="was deleted"):
        do(library(), "delete", category="notes")


def test_a_read_of_an_unknown_name_tells_those_that_there_are(library: MakeLibrary) -> None:
    for number in range(12):
        write(library(), {"n": number}, category=f"cat{number:02}")
    with pytest.raises(NotFound) as raised:
        read(library(), "other")
    assert "cat00, cat01" in raised.value.hint
    assert raised.value.hint.endswith("and more.")


def test_fields_narrow_a_read_to_top_level_keys(library: MakeLibrary) -> None:
    write(library(), {"a": 1, "b": {"c": 2}, "d": 3})
    assert do(library(), "read", category="notes", fields=" b , none,a").data == {"b": {"c": 2}, "a": 1}
    assert do(library(), "read", category="notes", fields="*").data == {"a": 1, "b": {"c": 2}, "d": 3}


def test_the_boundary_between_documents_and_logs_holds_at_every_entry_point(library: MakeLibrary) -> None:
    write(library(), {"a": 1})
    write(library(), {"a": 2})
    do(library(), "append", category="log", data={"n": 1})
    log, log_version = read(library(), "log"), do(library(), "read", category="log").version
    with pytest.raises(Conflict, match="is a log"):
        write(library(), {"a": 1}, category="log")
    with pytest.raises(Conflict, match="is a log"):
        write(library(), {"a": 1}, category="log", merge=True)
    with pytest.raises(Conflict, match="not a log"):
        do(library(), "append", category="notes", data={"n": 1})
    with pytest.raises(Conflict, match="only grows"):
        do(library(), "revert", category="log", version=log_version)
    assert (read(library()), read(library(), "log")) == ({"a": 2}, log)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_weakness_18_a_document_in_the_form_of_a_log_is_refused(
    library: MakeLibrary, merge: bool, exists: bool
) -> None:
    if exists:
        write(library(), {"entries": []})
    with pytest.raises(Invalid, match="looks like a log"):
        write(library(), {"_kind": "log", "entries": []}, merge=merge)
    assert write(library(), {"a": 1}).outcome in ("created", "replaced")


def test_weakness_49_a_deleted_log_makes_room_for_a_document_and_the_other_way_round(library: MakeLibrary) -> None:
    do(library(), "append", category="x", data={"n": 1})
    do(library(), "delete", category="x")
    write(library(), {"a": 1}, category="x")
    do(library(), "delete", category="x")
    assert do(library(), "append", category="x", data={"n": 2}).id == 1


def test_a_log_keeps_what_its_bounds_say(library: MakeLibrary, clock: Clock) -> None:
    for number in range(5):
        do(library(), "append", category="log", data={"n": number}, max_entries=3)
    assert [entry["data"]["n"] for entry in entries(library())] == [2, 3, 4]
    clock.ms += 2 * DAY
    last = do(library(), "append", category="log", data={"n": 5}, max_age_days=1)
    assert ([entry["id"] for entry in entries(library())], last.total_entries) == ([5], 1)
    assert read(library(), "log")["_retention"] == {"max_age_days": 1, "max_entries": 3}


def test_weakness_20_ids_go_on_after_a_log_became_empty_was_deleted_or_brought_back(
    library: MakeLibrary, clock: Clock
) -> None:
    ids = [do(library(), "append", category="log", data={}, max_age_days=1).id]
    clock.ms += 10 * DAY
    do(library(), "compact", category="log")
    # the reference engine keeps everything: what it says of the numbers must be the same all the same
    assert entries(library()) == [] or not library().store.capabilities.durable
    ids.append(do(library(), "append", category="log", data={}).id)
    removed = do(library(), "delete", category="log")
    ids.append(do(library(), "append", category="log", data={}).id)
    do(library(), "delete", category="log")
    do(library(), "revert", category="log", version=removed.version)
    ids.append(do(library(), "append", category="log", data={}).id)
    assert ids == [0, 1, 2, 3]


def test_entries_are_in_the_order_of_their_time_also_when_the_clock_goes_back(
    library: MakeLibrary, clock: Clock
) -> None:
    for step in (0, 5, -DAY, 3):
        clock.ms += step
        do(library(), "append", category="log", data={"step": step})
    found = entries(library())
    assert [entry["id"] for entry in found] == [0, 1, 2, 3]
    assert [entry["ts"] for entry in found] == sorted(entry["ts"] for entry in found)


def test_the_newest_entries_alone_can_be_read(library: MakeLibrary) -> None:
    for number in range(5):
        do(library(), "append", category="log", data={"n": number})
    found = do(library(), "read", category="log", entries=2).data["entries"]
    assert [entry["data"]["n"] for entry in found] == [3, 4]


@pytest.mark.parametrize(
    "bound", [{"max_entries": 0}, {"max_entries": 10**6}, {"max_age_days": 0}, {"max_age_days": -1}]
)
def test_a_bound_out_of_range_is_refused_by_its_name(library: MakeLibrary, bound: dict[str, int]) -> None:
    with pytest.raises(Invalid, match=next(iter(bound))):
        do(library(), "append", category="log", data={}, **bound)
    assert do(library(), "list").total == 0


def test_an_append_with_an_operation_id_is_done_once(library: MakeLibrary) -> None:
    first = do(library(), "append", category="log", data={"n": 1}, operation_id="x")
    again = do(library(), "append", category="log", data={"n": 1}, operation_id="x")
    assert (again.id, again.ts, again.repeated, first.repeated) == (first.id, first.ts, True, False)
    with pytest.raises(Conflict, match="used before"):
        do(library(), "append", category="log", data={"n": 2}, operation_id="x")
    assert len(entries(library())) == 1


def test_an_entry_over_the_limit_or_too_deep_for_its_log_is_refused(library: MakeLibrary) -> None:
    with pytest.raises(Invalid, match="limit of an entry"):
        do(library(), "append", category="log", data={"x": "y" * 70_000})
    deep: Any = 1
    for _ in range(jsonform.MAX_DEPTH - 1):
        deep = [deep]
    with pytest.raises(Invalid, match="nested deeper"):
        do(library(), "append", category="log", data={"x": deep})
    assert do(library(), "list").total == 0


def test_a_delta_tells_what_changed_and_is_cheap_when_nothing_did(library: MakeLibrary) -> None:
    first = write(library(), {"a": 1, "text": "x" * 500})
    assert do(library(), "delta", category="notes", since_hash=first.hash).status == "unchanged"
    write(library(), {"a": 2, "b": 3}, merge=True)
    changed = do(library(), "delta", category="notes", since_hash=first.hash)
    assert (changed.status, changed.changes.changed, changed.changes.added) == ("changed", {"/a": 2}, {"/b": 3})
    assert changed.data is None


def test_a_delta_is_the_whole_document_where_the_hash_is_unknown_or_the_changes_longer(library: MakeLibrary) -> None:
    first = write(library(), {"alpha": "x" * 50, "beta": "y"})
    write(library(), {"z": 1})
    for asked in (UNKNOWN, first.hash):
        replaced = do(library(), "delta", category="notes", since_hash=asked)
        assert (replaced.status, replaced.data) == ("replaced", {"z": 1})


def test_a_delta_of_a_deleted_category_says_so_with_its_time(library: MakeLibrary) -> None:
    first = write(library(), {"a": 1})
    removed = do(library(), "delete", category="notes")
    told = do(library(), "delta", category="notes", since_hash=first.hash)
    assert (told.status, told.deleted_at) == ("deleted", removed.deleted_at)
    with pytest.raises(NotFound):
        do(library(), "delta", category="never", since_hash=UNKNOWN)


def test_a_delta_of_a_log_gives_the_new_entries(library: MakeLibrary) -> None:
    do(library(), "append", category="log", data={"n": 0})
    known = do(library(), "read", category="log").hash
    for number in (1, 2):
        do(library(), "append", category="log", data={"n": number})
    told = do(library(), "delta", category="log", since_hash=known)
    assert told.status == "changed"
    assert [entry["data"]["n"] for entry in told.changes.added.values()] == [1, 2]
    assert list(told.changes.added) == ["/entries/1", "/entries/2"]


def test_a_list_goes_by_name_page_by_page(library: MakeLibrary) -> None:
    names = [f"cat{number}" for number in range(5)]
    for name in reversed(names):
        write(library(), {"n": 1}, category=name)
    do(library(), "delete", category="cat2")
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = do(library(), "list", limit=2, **after)
        seen += [row.name for row in page.categories]
        if page.next is None:
            break
        after = {"after": page.next}
    assert seen == ["cat0", "cat1", "cat3", "cat4"]
    assert page.total == 4


def test_a_log_that_only_a_hand_has_made_can_be_read_and_every_change_names_the_way_to_take_it_in(
    library: MakeLibrary, open_local: OpenLocal, tmp_path: Path
) -> None:
    plain = library()
    here = Library(open_local("hand.db"), plain.caller, plain.new_uid, plain.folder_exists, "test")
    write(here, {"a": 1})
    by_hand = {"_kind": "log", "entries": [{"id": 5, "ts": "2026-01-01T00:00:00+00:00", "data": {"n": 1}}]}
    (tmp_path / "categories" / "hand.json").write_text(jsonform.canonical(by_hand))
    assert read(here, "hand") == by_hand
    changes: dict[str, dict[str, Any]] = {"write": {"data": {}}, "append": {"data": {}}, "delete": {}}
    for command, more in changes.items():
        with pytest.raises(Conflict) as raised:
            do(here, command, category="hand", **more)
        assert "keepwell adopt" in raised.value.hint
    assert read(here, "hand") == by_hand
    do(here, "adopt", plan=str(tmp_path / "plan"))
    do(here, "adopt", apply=str(tmp_path / "plan"))
    assert do(here, "append", category="hand", data={"n": 2}).id == 6


WRITES: dict[str, dict[str, Any]] = {
    "write": {"data": {}},
    "append": {"data": {}},
    "delete": {},
    "revert": {"version": 1},
}


@pytest.mark.parametrize("command", WRITES)
def test_the_access_list_holds_for_every_write_and_nothing_changes(library: MakeLibrary, command: str) -> None:
    write(library(), {"a": 1}, category="projects")
    plain = library()
    mine = Library(
        plain.store,
        plain.caller,
        plain.new_uid,
        plain.folder_exists,
        "test",
        access=AccessList("laptop", ("desk",), ("laptop",), configured=True),
    )
    with pytest.raises(Denied, match="base_requires_admin"):
        do(mine, command, category="projects", **WRITES[command])
    assert read(mine, "projects") == {"a": 1}


@pytest.mark.parametrize("command", WRITES)
def test_without_permission_nothing_is_written(library: MakeLibrary, command: str) -> None:
    with pytest.raises(Denied, match="may not change") as raised:
        do(library(permissions=Permissions()), command, category="notes", **WRITES[command])
    assert "--allow-write" in raised.value.hint


def test_compacting_tells_first_and_then_removes_that_many(library: MakeLibrary, clock: Clock) -> None:
    for number in range(6):
        write(library(), {"n": number})
    told = do(library(), "compact", keep_versions=2, dry_run=True)
    done = do(library(), "compact", keep_versions=2)
    assert [(row.category, row.versions) for row in told.categories] == [("notes", 4)]
    assert told.categories == done.categories
    assert read(library()) == {"n": 5}


def test_a_context_keeps_its_budget_its_order_and_tells_what_it_left_out(library: MakeLibrary) -> None:
    write(library(), {"a": "x" * 400, "b": "y" * 400, "c": "z"}, category="first")
    write(library(), {"d": 1}, category="second")
    found = do(library(), "context", categories=["first", "missing", "second"], budget_tokens=200)
    assert [piece.category for piece in found.categories] == ["first", "second"]
    assert found.categories[0].omitted == ("b",)
    assert found.used_tokens <= found.budget_tokens
    assert [row.category for row in found.trimmed] == ["first"]
    assert [(row.category, row.reason.split(":")[0]) for row in found.failed] == [("missing", "not_found")]


def test_weakness_43_a_context_counts_what_it_loaded_and_keeps_failures_apart(library: MakeLibrary) -> None:
    found = do(library(), "context", categories=["one", "two"])
    assert (found.categories, found.used_tokens, len(found.failed)) == ((), 0, 2)


def test_a_context_is_the_same_for_the_same_state(library: MakeLibrary, clock: Clock) -> None:
    write(library(), {"b": 1, "a": 2})
    do(library(), "append", category="log", data={"n": 1})
    do(library(), "add", text="a lesson", evidence=[{"description": "seen"}])
    asked = {"categories": ["log", "notes"], "lessons": 3}
    first = do(library(), "context", **asked)
    clock.ms += 10_000
    assert do(library(), "context", **asked) == first
    assert [line.text for line in first.lessons] == ["a lesson"]


def test_a_context_gives_the_newest_entries_of_a_log_that_fit(library: MakeLibrary) -> None:
    for number in range(40):
        do(library(), "append", category="log", data={"n": number, "text": "x" * 40})
    [piece] = do(library(), "context", categories=["log"], budget_tokens=300).categories
    numbers = [entry["data"]["n"] for entry in piece.data["entries"]]
    assert numbers == list(range(numbers[0], 40))
    assert piece.omitted == (f"entries before id {numbers[0]}",)


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"lesson", "notes", "log"}),
    ({"kinds": ["lesson"]}, {"lesson"}),
    ({"kinds": ["memory"]}, {"notes"}),
    ({"kinds": ["log", "memory"]}, {"notes", "log"}),
    ({"category": "notes"}, {"notes"}),
    ({"category": "nothing"}, set()),
    ({"scope": "project"}, {"lesson"}),
    ({"updated_after": "2027-01-16"}, {"log"}),
    ({"updated_before": "2027-01-15"}, {"lesson", "notes"}),
    ({"updated_before": "2027-01-14"}, set()),
    ({"actor": "laptop"}, {"notes", "log"}),
    ({"actor": "pi"}, {"lesson"}),
    ({"actor": "nobody"}, set()),
]


@pytest.mark.parametrize(("filters", "expected"), [pytest.param(*case, id=str(case[0])) for case in FILTERS])
def test_weakness_31_filters_hold_whatever_else_is_found(
    library: MakeLibrary, clock: Clock, filters: dict[str, Any], expected: set[str]
) -> None:
    do(library(), "add", text="a zebra", evidence=[{"description": "seen"}])
    write(library(), {"animal": {"name": "zebra"}})
    clock.ms += DAY
    do(library(), "append", category="log", data={"saw": "a zebra"})
    found = do(library(), "search", query="zebra", **filters).memories
    assert {getattr(hit, "category", "lesson") for hit in found} == expected


@pytest.mark.parametrize(
    "filters", [{"scope": "global", "category": "notes"}, {"kinds": ["lesson"], "category": "notes"}]
)
def test_filters_that_leave_nothing_are_refused(library: MakeLibrary, filters: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="leave nothing"):
        do(library(), "search", query="zebra", **filters)


@pytest.mark.parametrize("query", ["100%", "a_b", "%", "_"])
def test_weakness_32_signs_of_patterns_are_text(library: MakeLibrary, query: str) -> None:
    write(library(), {"x": "100% sure of a_b"})
    write(library(), {"x": "nothing"}, category="other")
    found = do(library(), "search", query=query).memories
    assert {hit.category for hit in found} <= {"notes"}


def test_weakness_34_a_search_is_bounded_and_a_long_text_is_cut_around_what_was_found(library: MakeLibrary) -> None:
    write(library(), {"x": "before " * 500 + "zebra" + " after" * 500})
    [hit] = do(library(), "search", query="zebra").memories
    assert hit.cut
    assert "zebra" in hit.text
    assert len(hit.text) <= 600
    with pytest.raises(Invalid, match="limit"):
        do(library(), "search", query="zebra", limit=51)


def test_every_tool_tells_its_errors_in_one_style(library: MakeLibrary) -> None:
    for operation in OPERATIONS:
        if operation.tool is None:
            continue
        with pytest.raises(KeepwellError) as raised:
            library().perform(operation, {"nothing": 1})
        assert raised.value.line.startswith("invalid: ")


def test_search_finds_what_was_written_last_and_not_what_was_there_before(library: MakeLibrary) -> None:
    write(library(), {"x": "zebra", "y": "kept"})
    write(library(), {"x": "quagga"}, merge=True)
    found = {query: len(do(library(), "search", query=query).memories) for query in ("zebra", "quagga", "kept")}
    assert found == {"zebra": 0, "quagga": 1, "kept": 1}
    do(library(), "delete", category="notes")
    assert do(library(), "search", query="quagga").memories == ()


def test_names_of_tools_are_not_short_aliases() -> None:
    assert not [row.tool for row in OPERATIONS if row.tool and not row.tool.startswith(("memory_", "sync_"))]
    assert tool_named("memory_read").command == "read"


def test_a_hundred_writes_leave_as_many_versions_as_are_kept(library: MakeLibrary) -> None:
    for number in itertools.islice(itertools.count(), 110):
        write(library(), {"n": number})
    listed = do(library(), "versions", category="notes", limit=1_000).versions
    assert len(listed) >= 100
    assert do(library(), "versions", category="notes", version=listed[0].version).data == {"n": 109}
