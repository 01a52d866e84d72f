"""What every engine must do with categories, on each engine."""

from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import Clock, OpenLocal

from keepwell.model import journal, jsonform
from keepwell.model.category import CategoryKind, Compacted, Document, Heading, Retention, VersionAction
from keepwell.model.change import Change, ChangeKind, Draft, Payload, Stamp
from keepwell.model.errors import Conflict, NotFound
from keepwell.model.lesson import Author
from keepwell.model.query import DocumentQuery, Passage, Period
from keepwell.store.local.engine import Options
from keepwell.store.port import Store

ADA = Author("assistant", "pi", "s1", "m1")
DAY = 86_400_000
BOTH = (CategoryKind.MEMORY, CategoryKind.LOG)


def made(kind: ChangeKind, name: str, text: str | None = None, *, reason: str | None = None) -> Draft:
    return Draft(kind, name, None, ADA, Payload(text=text, reason=reason))


def written(
    name: str, value: Any, *, kind: ChangeKind = ChangeKind.CATEGORY_WRITTEN, reason: str | None = None
) -> Draft:
    return made(kind, name, jsonform.canonical(value), reason=reason)


def deleted(name: str) -> Draft:
    return made(ChangeKind.CATEGORY_DELETED, name)


def grown(name: str, value: Any, *, bounds: Retention = journal.DEFAULT) -> Draft:
    return made(ChangeKind.LOG_APPENDED, name, journal.appended(jsonform.canonical(value), bounds))


EMPTY_LOG = written("log", journal.compose({}, journal.DEFAULT, ()))


def append(store: Store, *drafts: Draft) -> list[int]:
    with store.writing() as writer:
        return [writer.append(draft) for draft in drafts]


def document(store: Store, name: str) -> Document:
    with store.reading() as reader:
        found = reader.document(name)
    assert found
    return found


def heading(store: Store, name: str) -> Heading:
    with store.reading() as reader:
        found = reader.heading(name)
    assert found
    return found


def kept_ids(store: Store) -> list[int]:
    return [entry["id"] for entry in document(store, "log").data["entries"]]


def passages(store: Store, *words: str, kinds: tuple[CategoryKind, ...] = BOTH, **more: Any) -> tuple[Passage, ...]:
    with store.reading() as reader:
        return reader.search_documents(DocumentQuery(words, kinds, **more))


def places(store: Store, *words: str, **more: Any) -> set[tuple[str, int | None, str]]:
    return {(hit.category, hit.entry_id, hit.key_path) for hit in passages(store, *words, **more)}


def test_a_document_reads_back_to_the_byte_with_its_facts(store: Store, clock: Clock) -> None:
    value = {"b": [1, 2.5, None, True], "a": {"日": "é\n"}, "big": 2**64 - 1}
    [version] = append(store, written("notes", value))
    found = document(store, "notes")
    text = jsonform.canonical(value)
    assert (found.text, found.data, found.edited_outside) == (text, value, False)
    facts = found.category
    assert (facts.hash, facts.size_bytes) == (jsonform.content_hash(text), len(text.encode()))
    assert (facts.name, facts.kind, facts.version) == ("notes", CategoryKind.MEMORY, version)
    assert (facts.updated_at, facts.updated_by) == (clock.ms, "laptop")


def test_what_was_never_written_is_not_there_in_any_view(store: Store) -> None:
    with store.reading() as reader:
        assert reader.heading("notes") is None
        assert reader.document("notes") is None
        assert reader.entry_count("notes") == 0
        assert reader.versions("notes", limit=9, before=None) == ()
        assert reader.version("notes", 1) is None
        assert reader.text_of("notes", "0" * 64) is None
        assert reader.compactable("notes", keep_versions=1) == Compacted(0, 0)
        assert reader.categories(after="", limit=9) == ()
        assert reader.edits() == ()
        assert reader.dirty() == ()


def test_a_heading_is_found_by_every_spelling_and_a_document_by_its_name_only(store: Store) -> None:
    append(store, written("Café", {"a": 1}))
    with store.reading() as reader:
        named = [reader.heading(name) for name in ("Café", "CAFÉ", "cafe\u0301", "\uff23afé")]
        assert [found.name for found in named if found] == ["Café"] * 4
        assert reader.document("Café")
        assert reader.document("CAFÉ") is None
        assert reader.versions("CAFÉ", limit=9, before=None) == ()


@pytest.mark.parametrize("twin", ["Notes", "\uff4eotes"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_weakness_47_a_second_name_that_a_file_system_takes_for_the_first_is_refused_also_after_a_deletion(
    store: Store, twin: str, is_deleted: bool
) -> None:
    append(store, written("notes", {"a": 1}), *([deleted("notes")] if is_deleted else []))
    with pytest.raises(Conflict, match="'notes'"):
        append(store, written("other", {"lost": True}), written(twin, {"b": 2}))
    with store.reading() as reader:
        assert reader.heading("other") is None
        assert len(reader.changes(after=0, limit=9)) == 1 + is_deleted
    assert heading(store, "notes").is_live is not is_deleted


@pytest.mark.parametrize("draft", [deleted("notes"), grown("notes", {})])
def test_what_is_not_there_can_neither_be_deleted_nor_grow(store: Store, draft: Draft) -> None:
    with pytest.raises(NotFound):
        append(store, draft)
    append(store, written("notes", {}), deleted("notes"))
    with pytest.raises(NotFound):
        append(store, draft)


def test_versions_come_newest_first_and_say_who_when_why_and_on_what(store: Store, clock: Clock) -> None:
    first, second = append(store, written("notes", {"n": 1}, reason="one"), written("notes", {"n": 2}))
    clock.ms += 5
    [gone] = append(store, deleted("notes"))
    with store.reading() as reader:
        found = reader.versions("notes", limit=9, before=None)
        assert [version.id for version in reader.versions("notes", limit=1, before=gone)] == [second]
        assert reader.versions("notes", limit=9, before=first) == ()
    assert [(version.id, version.action, version.reason) for version in found] == [
        (gone, VersionAction.DELETED, None),
        (second, VersionAction.WRITTEN, None),
        (first, VersionAction.WRITTEN, "one"),
    ]
    assert [version.previous_hash for version in found] == [found[1].hash, found[2].hash, None]
    assert [version.created_at for version in found] == [clock.ms, clock.ms - 5, clock.ms - 5]
    assert {(version.actor, version.kind, version.text) for version in found} == {("laptop", CategoryKind.MEMORY, None)}


def test_weakness_14_each_version_has_its_text_by_number_and_by_hash_also_after_a_deletion(store: Store) -> None:
    values = [{"n": 1}, {"n": 2}]
    numbers = append(store, *(written("notes", value) for value in values), deleted("notes"))
    append(store, written("other", {"n": 1}))
    texts = [jsonform.canonical(value) for value in (*values, values[-1])]
    with store.reading() as reader:
        found = [reader.version("notes", number) for number in numbers]
        assert [version.text for version in found if version] == texts
        assert [version.hash for version in found if version] == list(map(jsonform.content_hash, texts))
        assert [reader.text_of("notes", jsonform.content_hash(text)) for text in texts] == texts
        assert reader.version("other", numbers[0]) is None
        assert reader.text_of("other", jsonform.content_hash(texts[1])) is None


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        (ChangeKind.CATEGORY_WRITTEN, VersionAction.WRITTEN),
        (ChangeKind.CATEGORY_ADOPTED, VersionAction.ADOPTED),
        (ChangeKind.CATEGORY_RESTORED, VersionAction.RESTORED),
    ],
)
def test_a_version_says_what_made_it_and_a_deleted_category_is_live_again(
    store: Store, kind: ChangeKind, action: VersionAction
) -> None:
    append(store, written("notes", {"n": 1}), deleted("notes"))
    assert heading(store, "notes").deleted_at
    [number] = append(store, written("notes", {"n": 2}, kind=kind))
    assert heading(store, "notes").deleted_at is None
    with store.reading() as reader:
        [newest] = reader.versions("notes", limit=1, before=None)
    assert (newest.id, newest.action, newest.previous_hash) == (number, action, None)
    assert document(store, "notes").data == {"n": 2}


def test_live_categories_are_listed_by_name_after_a_name_within_a_limit(store: Store) -> None:
    append(store, *(written(name, {}) for name in ("b", "a", "é", "c", "B2")), deleted("c"))
    with store.reading() as reader:
        assert [row.name for row in reader.categories(after="", limit=9)] == ["B2", "a", "b", "é"]
        assert [row.name for row in reader.categories(after="a", limit=1)] == ["b"]
        assert [row.name for row in reader.categories(after="aa", limit=9)] == ["b", "é"]
        assert reader.counts().categories == 4


def test_a_list_and_a_read_tell_the_same_facts_of_a_log_that_has_just_grown(store: Store) -> None:
    append(store, EMPTY_LOG, grown("log", {"n": 1}), grown("log", {"n": 2}))
    with store.reading() as reader:
        [listed] = reader.categories(after="", limit=9)
    found = document(store, "log")
    assert listed == found.category
    assert (listed.hash, listed.size_bytes) == (jsonform.content_hash(found.text), len(found.text.encode()))


def test_a_log_numbers_its_entries_from_zero_and_says_their_time(store: Store, clock: Clock) -> None:
    _, first = append(store, EMPTY_LOG, grown("log", {"n": 1}))
    clock.ms += 1
    [second] = append(store, grown("log", {"n": 2}))
    assert (first, second) == (0, 1)
    entries = document(store, "log").data["entries"]
    assert [(entry["id"], entry["data"]["n"]) for entry in entries] == [(0, 1), (1, 2)]
    assert [entry["ts"] for entry in entries] == [journal.timestamp(clock.ms - 1), journal.timestamp(clock.ms)]
    found = heading(store, "log")
    assert (found.kind, found.next_entry_id, found.updated_at) == (CategoryKind.LOG, 2, clock.ms)
    with store.reading() as reader:
        assert reader.entry_count("log") == reader.counts().log_entries == 2


def test_an_append_makes_no_version_and_is_one_change(store: Store) -> None:
    append(store, EMPTY_LOG, *(grown("log", {"n": number}) for number in range(3)))
    with store.reading() as reader:
        assert len(reader.versions("log", limit=9, before=None)) == 1
        assert reader.counts().changes == 4


def test_a_log_keeps_the_newest_of_its_count_and_the_youngest_of_its_age(store: Store, clock: Clock) -> None:
    bounds = Retention(3, 2)
    append(store, EMPTY_LOG, *(grown("log", {}, bounds=bounds) for _ in range(5)))
    assert kept_ids(store) == [2, 3, 4]
    clock.ms += 2 * DAY
    append(store, grown("log", {}, bounds=bounds))
    # exactly two days old is not older than two days
    assert kept_ids(store) == [3, 4, 5]
    clock.ms += 1
    append(store, grown("log", {}, bounds=bounds))
    assert kept_ids(store) == [5, 6]
    assert heading(store, "log").retention == bounds


def test_weakness_20_numbers_of_entries_are_not_used_again_after_a_deletion_or_another_document(store: Store) -> None:
    numbers = []
    for between in ([], [written("log", {"a": 1}), deleted("log")], []):
        numbers += append(store, *between, EMPTY_LOG, grown("log", {}))[-1:]
        last = document(store, "log").text
        append(store, made(ChangeKind.CATEGORY_DELETED, "log", last))
    append(store, made(ChangeKind.CATEGORY_RESTORED, "log", last))
    assert (numbers, kept_ids(store)) == ([0, 1, 2], [2])


def test_the_last_document_of_a_log_comes_with_its_deletion_and_brings_it_back(store: Store) -> None:
    append(store, EMPTY_LOG, grown("log", {"n": 1}))
    before = document(store, "log").text
    [gone] = append(store, made(ChangeKind.CATEGORY_DELETED, "log", before))
    with store.reading() as reader:
        assert reader.entry_count("log") == 0
        version = reader.version("log", gone)
    assert version
    assert (version.text, version.kind) == (before, CategoryKind.LOG)
    append(store, made(ChangeKind.CATEGORY_RESTORED, "log", before))
    assert document(store, "log").text == before
    assert append(store, grown("log", {"n": 2})) == [1]


def test_own_keys_of_a_log_that_was_taken_in_stay_when_it_grows(store: Store) -> None:
    text = jsonform.canonical(journal.compose({"title": "mine"}, Retention(5, None), ()))
    append(store, made(ChangeKind.CATEGORY_ADOPTED, "log", text), grown("log", {"n": 1}, bounds=Retention(5, None)))
    found = document(store, "log").data
    assert (found["title"], found["_retention"]["max_entries"], len(found["entries"])) == ("mine", 5, 1)


def test_search_finds_places_by_any_word_in_live_categories_only(store: Store) -> None:
    append(store, written("notes", {"animal": {"name": "a Zebra"}, "list": [1, "quagga"]}))
    append(store, EMPTY_LOG, grown("log", {"saw": "zebra"}), grown("log", {"saw": "nothing"}))
    append(store, written("gone", {"x": "zebra"}), deleted("gone"))
    assert places(store, "ZEBRA") == {("notes", None, "animal.name"), ("log", 0, "saw")}
    assert places(store, "quagga", "nothing") == {("notes", None, "list[1]"), ("log", 1, "saw")}
    assert places(store, "unheard") == places(store) == set()


def test_what_a_document_no_longer_says_is_not_found(store: Store) -> None:
    append(store, written("notes", {"a": "zebra", "b": "heron"}), written("notes", {"a": "quagga", "b": "heron"}))
    assert places(store, "zebra") == set()
    assert places(store, "quagga", "heron") == {("notes", None, "a"), ("notes", None, "b")}


def test_entries_that_a_bound_has_dropped_are_not_found(store: Store) -> None:
    append(store, EMPTY_LOG, *(grown("log", {"said": word}, bounds=Retention(1, None)) for word in ("zebra", "heron")))
    assert places(store, "zebra") == set()
    assert places(store, "heron") == {("log", 1, "said")}


def test_weakness_36_numbers_and_truth_values_are_found_as_they_are_written(store: Store) -> None:
    append(store, written("notes", {"port": 8443, "on": True, "off": False, "none": None, "empty": {}}))
    assert places(store, "8443") == {("notes", None, "port")}
    assert places(store, "true") == {("notes", None, "on")}
    assert places(store, "false") == {("notes", None, "off")}


def test_weakness_33_a_key_that_matches_stands_below_a_text_that_does(store: Store) -> None:
    append(store, written("key", {"zebra": "heron"}), written("text", {"bird": "zebra"}))
    assert [hit.category for hit in passages(store, "zebra")] == ["text", "key"]


def test_weakness_33_the_name_of_a_category_is_no_match_for_everything_in_it(store: Store) -> None:
    append(store, written("zebra", {"bird": "heron"}), written("birds", {"bird": "zebra"}))
    assert places(store, "zebra") == {("birds", None, "bird")}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"notes", "log"}),
        ({"kinds": (CategoryKind.MEMORY,)}, {"notes"}),
        ({"kinds": (CategoryKind.LOG,)}, {"log"}),
        ({"kinds": ()}, set()),
        ({"category": "log"}, {"log"}),
        ({"category": "Log"}, set()),
        ({"period": Period(after=1_800_000_000_001)}, {"log"}),
        ({"period": Period(before=1_800_000_000_000)}, {"notes"}),
        ({"period": Period(1_800_000_000_000, 1_800_000_000_005)}, {"notes", "log"}),
        ({"period": Period(1_800_000_000_001, 1_800_000_000_004)}, set()),
        ({"actor": "laptop"}, {"notes", "log"}),
        ({"actor": "desk"}, set()),
    ],
)
def test_weakness_31_filters_hold_inside_the_ranking(
    store: Store, clock: Clock, filters: dict[str, Any], expected: set[str]
) -> None:
    append(store, written("notes", {"x": "zebra"}), EMPTY_LOG)
    clock.ms += 5
    append(store, grown("log", {"x": "zebra"}))
    assert {hit.category for hit in passages(store, "zebra", **filters)} == expected


def test_a_filter_is_applied_before_the_limit(store: Store) -> None:
    append(store, *(written(f"cat{number}", {"x": "zebra"}) for number in range(9)))
    [hit] = passages(store, "zebra", category="cat7", limit=1)
    assert hit.category == "cat7"
    assert len(passages(store, "zebra", limit=4)) == 4


@pytest.mark.parametrize("word", ['"', "zebra*", "NOT", "x OR", "key_path:zebra", "(", "^zebra", "a NEAR b", "%", "_"])
def test_weakness_32_no_word_is_an_operator_or_a_pattern(store: Store, word: str) -> None:
    append(store, written("notes", {"bird": "heron"}))
    assert places(store, word) == set()
    assert places(store, word, "heron") == {("notes", None, "bird")}


def test_compacting_leaves_the_newest_version_readable_and_says_what_it_did(store: Store) -> None:
    numbers = append(store, *(written("notes", {"n": number}) for number in range(5)))
    with store.reading() as reader:
        assert reader.compactable("notes", keep_versions=2) == Compacted(3, 0)
    with store.writing() as writer:
        assert writer.compact("notes", keep_versions=2) == Compacted(3, 0)
    with store.reading() as reader:
        newest = reader.version("notes", numbers[-1])
    assert newest
    assert newest.text == document(store, "notes").text == jsonform.canonical({"n": 4})


def test_a_transaction_that_is_taken_back_changes_nothing(store: Store) -> None:
    numbers = append(store, written("notes", {"n": 1}), written("notes", {"n": 2}), EMPTY_LOG)
    with store.writing() as writer:
        writer.append(written("notes", {"n": 3}))
        writer.append(grown("log", {}))
        writer.compact("notes", keep_versions=1)
        assert writer.entry_count("log") == 1
        writer.take_back()
    assert document(store, "notes").data == {"n": 2}
    assert kept_ids(store) == []
    with store.reading() as reader:
        assert [version.id for version in reader.versions("notes", limit=9, before=None)] == numbers[1::-1]
        assert reader.counts().changes == 3
    assert store.check() == ()


def test_a_block_that_raises_leaves_no_category_behind(store: Store) -> None:
    append(store, written("notes", {"n": 1}), EMPTY_LOG)

    class Fault(Exception):
        pass

    def fail_half_way() -> None:
        with store.writing() as writer:
            writer.append(written("notes", {"n": 2}))
            writer.append(written("new", {}))
            writer.append(grown("log", {}))
            raise Fault

    with pytest.raises(Fault):
        fail_half_way()
    assert document(store, "notes").data == {"n": 1}
    assert kept_ids(store) == []
    assert append(store, grown("log", {})) == [0]
    with store.reading() as reader:
        assert reader.heading("new") is None


def test_a_reader_keeps_its_instant_while_a_category_is_replaced_grown_and_deleted(store: Store) -> None:
    append(store, written("notes", {"n": 1}), written("other", {}), EMPTY_LOG)
    with store.reading() as reader:
        reader.counts()
        append(store, written("notes", {"n": 2}), deleted("other"), grown("log", {}))
        seen = reader.document("notes")
        assert seen
        assert (seen.data, seen.edited_outside) == ({"n": 1}, False)
        assert reader.document("other")
        assert reader.entry_count("log") == 0
    assert document(store, "notes").data == {"n": 2}
    assert kept_ids(store) == [0]


def test_categories_that_were_changed_are_dirty_longest_ago_first(store: Store, clock: Clock) -> None:
    for draft in (
        written("b", {}),
        written("a", {}),
        EMPTY_LOG,
        deleted("a"),
        written("b", {"n": 1}),
        grown("log", {}),
    ):
        clock.ms += 1
        append(store, draft)
    with store.reading() as reader:
        assert reader.dirty() == ("a", "b", "log")


def test_the_times_of_a_category_rise_when_the_clock_goes_back(store: Store, clock: Clock) -> None:
    append(store, EMPTY_LOG, grown("log", {}))
    clock.ms -= DAY
    append(store, grown("log", {}, bounds=Retention(9, 1)), written("notes", {"n": 1}), written("notes", {"n": 2}))
    times = [journal.milliseconds(entry["ts"]) for entry in document(store, "log").data["entries"]]
    assert times == [clock.ms + DAY, clock.ms + DAY]
    with store.reading() as reader:
        made_at = [version.created_at for version in reader.versions("notes", limit=9, before=None)]
    assert made_at == [clock.ms + DAY, clock.ms + DAY]


def foreign(store: Store, draft: Draft, *, ms: int, uid: str = "elsewhere") -> Change:
    """The same change as another device would have made it."""
    with store.reading() as reader:
        like = reader.changes(after=0, limit=1)[0]
    return replace(
        like, uid=uid, stamp=Stamp(ms, 0, "desk"), kind=draft.kind, subject=draft.subject, payload=draft.payload
    )


def test_a_newer_change_from_another_device_becomes_what_the_category_says_once(store: Store, clock: Clock) -> None:
    append(store, written("notes", {"n": 1}))
    change = foreign(store, written("notes", {"n": 2}), ms=clock.ms + 1)
    with store.writing() as writer:
        assert writer.take(change, None)
        assert not writer.take(change, None)
    found = document(store, "notes")
    assert (found.data, found.category.updated_by, found.category.updated_at) == ({"n": 2}, "desk", clock.ms + 1)
    with store.reading() as reader:
        assert len(reader.versions("notes", limit=9, before=None)) == 2


def test_an_older_change_from_another_device_is_a_version_and_the_newest_stays(store: Store, clock: Clock) -> None:
    append(store, written("notes", {"n": 1}))
    with store.writing() as writer:
        assert writer.take(foreign(store, written("notes", {"n": 0}), ms=clock.ms - 1), None)
        assert writer.take(foreign(store, deleted("notes"), ms=clock.ms - 1, uid="gone"), None)
    assert document(store, "notes").data == {"n": 1}
    assert document(store, "notes").category.updated_by == "laptop"
    with store.reading() as reader:
        actors = [version.actor for version in reader.versions("notes", limit=9, before=None)]
        assert sorted(actors) == ["desk", "laptop"]


def test_a_change_that_another_program_dates_is_recorded_once_at_its_time(store: Store, clock: Clock) -> None:
    for expected in (True, False):
        with store.writing() as writer:
            assert writer.record(written("notes", {"n": 1}), uid="old:1", ms=clock.ms - DAY) is expected
    assert document(store, "notes").category.updated_at == clock.ms - DAY


def test_forgetting_leaves_the_name_and_the_next_number_only(store: Store) -> None:
    append(store, EMPTY_LOG, grown("log", {"said": "zebra"}), made(ChangeKind.CATEGORY_FORGOTTEN, "log", "1"))
    with store.reading() as reader:
        assert reader.document("log") is None
        assert reader.versions("log", limit=9, before=None) == ()
        assert reader.erased() == ((ChangeKind.CATEGORY_FORGOTTEN, "log"),)
        assert "zebra" not in repr(reader.changes(after=0, limit=9))
    assert places(store, "zebra") == set()
    assert append(store, EMPTY_LOG, grown("log", {}))[1] == 1


def test_max_versions_bounds_the_history_and_the_newest_are_kept(open_local: OpenLocal) -> None:
    store = open_local(options=Options(max_versions=3))
    numbers = append(store, *(written("notes", {"n": number}) for number in range(5)), deleted("notes"))
    with store.reading() as reader:
        kept = reader.versions("notes", limit=9, before=None)
        texts = [found.text for number in numbers if (found := reader.version("notes", number))]
        assert reader.text_of("notes", jsonform.content_hash(jsonform.canonical({"n": 0}))) is None
    assert [version.id for version in kept] == numbers[:-4:-1]
    assert texts == [jsonform.canonical({"n": number}) for number in (3, 4, 4)]
    assert store.check() == ()
