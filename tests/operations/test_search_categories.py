"""Searching categories and lessons together, on each engine."""

from typing import Any

import pytest
from tests.conftest import Clock, MakeLibrary
from tests.operations.test_categories import DAY, do, write

from keepwell.model.errors import Invalid
from keepwell.operations.library import Library
from keepwell.operations.recall import PASSAGE_CHARACTERS

EVIDENCE = [{"description": "seen"}]
NOON = 1_800_014_400_000  # 2027-01-15T12:00:00Z
BEFORE, AFTER = "before " * 300, " after" * 300


def search(library: Library, query: str = "zebra", **more: Any) -> list[Any]:
    return list(do(library, "search", query=query, limit=50, **more).memories)


def found(library: Library, query: str = "zebra", **more: Any) -> set[str]:
    return {getattr(hit, "category", "lesson") for hit in search(library, query, **more)}


def test_lessons_documents_and_entries_come_as_one_list_with_what_each_is(library: MakeLibrary, clock: Clock) -> None:
    do(library(), "add", text="a zebra", evidence=EVIDENCE)
    write(library(), {"animals": [{"name": "a zebra"}]})
    do(library(), "append", category="log", data={"saw": "a zebra"})
    by_kind = {hit.kind if hasattr(hit, "category") else "lesson": hit for hit in search(library())}
    assert set(by_kind) == {"lesson", "memory", "log"}
    assert (by_kind["memory"].category, by_kind["memory"].key_path) == ("notes", "animals[0].name")
    assert (by_kind["log"].entry_id, by_kind["log"].key_path, by_kind["log"].text) == (0, "saw", "a zebra")
    assert (by_kind["log"].updated_at, by_kind["log"].updated_by) == (clock.ms, "laptop")
    scores = [hit.score for hit in search(library())]
    assert scores == sorted(scores, reverse=True)


def test_the_limit_holds_for_the_joint_list_and_neither_kind_fills_it_alone(library: MakeLibrary) -> None:
    for number in range(6):
        do(library(), "add", text=f"zebra {number}", evidence=EVIDENCE)
        write(library(), {"x": "zebra"}, category=f"cat{number}")
    reply = do(library(), "search", query="zebra", limit=4)
    assert [hasattr(hit, "category") for hit in reply.memories].count(True) == 2
    assert len(reply.memories) == 4


def test_a_document_is_found_once_and_each_entry_of_a_log_for_itself(library: MakeLibrary) -> None:
    write(library(), {"a": "zebra", "b": "zebra", "zebra": 1})
    for _ in range(2):
        do(library(), "append", category="log", data={"a": "zebra", "b": "zebra"})
    places = [(hit.category, hit.entry_id) for hit in search(library())]
    assert sorted(places, key=str) == [("log", 0), ("log", 1), ("notes", None)]


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ({"updated_after": "2027-01-15"}, {"morning", "evening"}),
        ({"updated_before": "2027-01-15"}, {"morning", "evening"}),
        ({"updated_after": "2027-01-15T12:00:00Z"}, {"evening"}),
        ({"updated_before": "2027-01-15T12:00:00Z"}, {"morning"}),
        ({"updated_after": "2027-01-15T13:59:59.999+02:00", "updated_before": "2027-01-15T23:00:00+02:00"}, set()),
        ({"updated_after": "2027-01-15T23:59:59.999+02:00"}, {"evening"}),
        ({"updated_before": "2027-01-14"}, set()),
        ({"updated_after": "2027-01-16"}, set()),
        ({"updated_after": "2027-01-15", "updated_before": "2027-01-15"}, {"morning", "evening"}),
    ],
)
def test_weakness_35_dates_are_compared_as_times_and_a_date_means_its_whole_day(
    library: MakeLibrary, clock: Clock, dates: dict[str, str], expected: set[str]
) -> None:
    clock.ms = NOON - DAY // 2
    write(library(), {"x": "zebra"}, category="morning")
    clock.ms = NOON + DAY // 2 - 1
    do(library(), "append", category="evening", data={"x": "zebra"})
    assert found(library(), **dates) == expected


def test_weakness_35_an_entry_is_dated_by_itself_and_not_by_its_log(library: MakeLibrary, clock: Clock) -> None:
    do(library(), "append", category="log", data={"x": "zebra"})
    clock.ms += 10 * DAY
    do(library(), "append", category="log", data={"x": "heron"})
    assert [hit.entry_id for hit in search(library(), updated_before="2027-01-16")] == [0]
    assert search(library(), updated_after="2027-01-16") == []
    assert [hit.entry_id for hit in search(library(), "heron", updated_after="2027-01-16")] == [1]


def test_weakness_31_a_filter_with_no_match_inside_finds_nothing_outside(library: MakeLibrary) -> None:
    write(library(), {"x": "zebra"})
    write(library(), {"x": "heron"}, category="birds")
    assert found(library(), category="birds") == set()
    assert found(library()) == {"notes"}


@pytest.mark.parametrize("name", ["notes", "zebra"])
def test_weakness_33_the_name_of_a_category_is_no_match_for_what_is_in_it(library: MakeLibrary, name: str) -> None:
    write(library(), {"bird": "heron", "other": "lynx"}, category=name)
    assert found(library(), name) == set()
    assert found(library(), "heron") == {name}


def test_weakness_34_the_count_tells_how_many_match_and_not_how_many_are_shown(library: MakeLibrary) -> None:
    for number in range(9):
        write(library(), {"x": "zebra"}, category=f"cat{number}")
    reply = do(library(), "search", query="zebra", limit=2)
    assert len(reply.memories) == 2
    assert [(arm.name, arm.candidates) for arm in reply.arms if arm.candidates] == [("categories", 9)]


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("quagga", "quagga"),
        ("quagga", "Where is the quagga?"),
        ("quagga", '"QUAGGA"'),
        ("quagga", "(quagga)"),
        ("pre edit", "pre-edit"),
        ("\u0130stanbul \u0130zmir quagga", "quagga"),
    ],
)
def test_weakness_34_a_long_text_is_cut_around_what_was_found_however_it_was_asked(
    library: MakeLibrary, said: str, query: str
) -> None:
    write(library(), {"x": BEFORE + said + AFTER})
    [hit] = search(library(), query)
    assert said in hit.text
    assert (hit.cut, len(hit.text)) == (True, PASSAGE_CHARACTERS)


@pytest.mark.parametrize(("said", "query"), [("caf\u00e9", "cafe"), ("testing", "tests"), ("Stra\u00dfe", "STRASSE")])
def test_a_long_text_is_cut_around_what_an_index_takes_for_the_same_word(
    library: MakeLibrary, said: str, query: str
) -> None:
    # the reference engine knows neither accents nor stems: the key lets both find the place
    write(library(), {"heron": BEFORE + said + AFTER})
    [hit] = search(library(), f"{query} heron")
    assert said in hit.text


def test_a_short_text_is_shown_whole(library: MakeLibrary) -> None:
    write(library(), {"x": "zebra " + "x" * (PASSAGE_CHARACTERS - 6)})
    [hit] = search(library())
    assert (hit.cut, len(hit.text)) == (None, PASSAGE_CHARACTERS)


@pytest.mark.parametrize("kinds", [["lesson", "memory", "log"], ["log", "memory", "lesson"], None])
def test_all_kinds_are_the_same_as_none_named(library: MakeLibrary, kinds: list[str] | None) -> None:
    do(library(), "add", text="a zebra", evidence=EVIDENCE)
    write(library(), {"x": "zebra"})
    asked: dict[str, Any] = {} if kinds is None else {"kinds": kinds}
    assert found(library(), **asked) == {"lesson", "notes"}


@pytest.mark.parametrize("bad", [{"kinds": []}, {"kinds": ["memories"]}, {"updated_after": "20270115"}, {"actor": ""}])
def test_a_filter_that_means_nothing_is_refused_by_its_name(library: MakeLibrary, bad: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=next(iter(bad))):
        search(library(), **bad)


def test_a_deleted_category_is_not_found_and_is_again_when_it_is_brought_back(library: MakeLibrary) -> None:
    write(library(), {"x": "zebra"})
    removed = do(library(), "delete", category="notes")
    assert found(library()) == set()
    do(library(), "revert", category="notes", version=removed.version)
    assert found(library()) == {"notes"}
