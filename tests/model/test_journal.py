"""Logs as values: their document, their bounds, and which earlier states can be told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepwell.model import journal, jsonform
from keepwell.model.category import CategoryKind, Retention
from keepwell.model.errors import Invalid
from keepwell.model.journal import DEFAULT, Entry, compose, effective, entries_at, kind_of, oldest_kept, taken_apart


def log(count: int, *, root: dict[str, Any] | None = None) -> dict[str, Any]:
    entries = [Entry(number, "2026-06-17T09:00:00+00:00", jsonform.canonical({"n": number})) for number in range(count)]
    return compose(root or {}, DEFAULT, entries)


def test_the_published_vector_of_a_log_is_reproduced() -> None:
    entry = Entry(0, "2026-06-17T09:00:00+00:00", jsonform.canonical({"msg": "hi"}))
    text = jsonform.canonical(compose({}, Retention(200, None), [entry]))
    assert len(text) == 224
    assert jsonform.content_hash(text) == "5a4805ad81baf9b216a4d9514305a86cf7ffd274fd4016685e0dc5241913a584"


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (log(0), CategoryKind.LOG),
        ({"_kind": "log", "entries": {}}, CategoryKind.MEMORY),
        ({"_kind": "log"}, CategoryKind.MEMORY),
        ({"entries": []}, CategoryKind.MEMORY),
        ([], CategoryKind.MEMORY),
        (None, CategoryKind.MEMORY),
    ],
)
def test_a_log_is_told_by_its_kind_and_its_entries(document: Any, kind: CategoryKind) -> None:
    assert kind_of(document) is kind


@pytest.mark.parametrize(
    ("stored", "given_", "result"),
    [
        (None, (None, None), (200, None)),
        (None, (None, 7), (200, 7)),
        (None, (5, None), (5, None)),
        (Retention(5, 7), (None, None), (5, 7)),
        (Retention(5, 7), (9, None), (9, 7)),
        (Retention(5, None), (None, 3), (5, 3)),
    ],
)
def test_weakness_19_naming_one_bound_never_takes_the_other_away(
    stored: Retention | None, given_: tuple[int | None, int | None], result: tuple[int, int | None]
) -> None:
    bounds = effective(stored, max_entries=given_[0], max_age_days=given_[1])
    assert (bounds.max_entries, bounds.max_age_days) == result


@given(st.integers(1, 50), st.integers(0, 200))
def test_a_count_keeps_the_newest(bound: int, next_id: int) -> None:
    smallest, _ = oldest_kept(Retention(bound, None), next_id=next_id, now_ms=10**12)
    assert len(range(max(smallest, 0), next_id)) == min(bound, next_id)


def test_weakness_10_the_longest_age_neither_overflows_nor_drops_what_is_new() -> None:
    _, earliest = oldest_kept(Retention(1, journal.LARGEST_DAYS), next_id=1, now_ms=1_800_000_000_000)
    assert earliest == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"_retention": 3},
        {"_retention": {"max_entries": 0, "max_age_days": None}},
        {"_retention": {"max_entries": True, "max_age_days": None}},
        {"_retention": {"max_entries": 5, "max_age_days": -1}},
        {"_retention": {"max_entries": 5, "max_age_days": 10**9}},
        {"entries": [{"id": "0", "ts": "x", "data": {}}]},
        {"entries": [{"data": {}}]},
        {"entries": [7]},
    ],
)
def test_a_log_of_another_form_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        taken_apart({**log(1), **bad})


@given(st.integers(0, 12), st.dictionaries(st.text(), st.integers() | st.lists(st.text()), max_size=3))
def test_a_log_taken_apart_and_put_together_is_the_same(count: int, root: dict[str, Any]) -> None:
    own = {key: value for key, value in root.items() if key not in ("_kind", "_retention", "entries")}
    document = log(count, root=own)
    rest, retention, entries = taken_apart(document)
    assert compose(rest, retention, entries) == document


@given(st.integers(0, 12), st.integers(0, 12), st.dictionaries(st.sampled_from("aez"), st.text(), max_size=3))
def test_an_earlier_state_is_found_by_its_hash(count: int, seen: int, root: dict[str, Any]) -> None:
    document = log(count, root=root)
    earlier = {**document, "entries": document["entries"][:seen]}
    asked = jsonform.content_hash(jsonform.canonical(earlier))
    assert entries_at(document, asked) == min(seen, count)
    assert entries_at(document, "0" * 64) is None


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (1_800_000_000_000, "2027-01-15T08:00:00+00:00"),
        (1_800_000_000_120, "2027-01-15T08:00:00.120+00:00"),
    ],
)
def test_times_are_written_in_utc_and_read_back(ms: int, text: str) -> None:
    assert journal.timestamp(ms) == text
    assert journal.milliseconds(text) == ms


def test_a_time_that_cannot_be_read_has_no_age() -> None:
    assert journal.milliseconds("yesterday") is None
