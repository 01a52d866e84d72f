"""Logs as values: their document, their bounds, and which earlier states can be told."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepwell.model import journal, jsonform
from keepwell.model.catalog import fold_categories
from keepwell.model.category import CategoryKind, Retention
from keepwell.model.change import Change, ChangeKind, Payload, Stamp
from keepwell.model.errors import Invalid
from keepwell.model.journal import DEFAULT, Entry, compose, effective, entries_at, kind_of, oldest_kept, taken_apart
from keepwell.model.lesson import Author

DAY = 86_400_000


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


class Step(NamedTuple):
    passed_ms: int
    max_entries: int | None
    max_age_days: int | None


steps = st.builds(
    Step,
    st.integers(0, 3 * DAY),
    st.none() | st.integers(1, 4),
    st.none() | st.sampled_from([1, 2, journal.LARGEST_DAYS]),
)


@given(st.lists(steps, max_size=12))
def test_after_any_appends_both_bounds_hold_and_ids_and_times_rise(history: list[Step]) -> None:
    state = fold_categories([*made_of(history)]).get("log")
    assert (state is None) is not bool(history)
    if state is None or state.retention is None:
        return
    times = [journal.milliseconds(entry.ts) for entry in state.entries]
    ids = [entry.id for entry in state.entries]
    count, days = state.retention.max_entries, state.retention.max_age_days
    assert count is not None
    assert len(ids) <= count
    assert days is None or all(at is not None and at >= state.updated_at - days * DAY for at in times)
    assert ids == sorted(set(ids))
    assert times == sorted(at for at in times if at is not None)
    assert ids[-1] == len(history) - 1 == state.next_entry_id - 1


def made_of(history: list[Step]) -> Iterator[Change]:
    """The log of changes of one journal."""
    retention, now = DEFAULT, 1_800_000_000_000
    if history:
        yield change(1, now, ChangeKind.CATEGORY_WRITTEN, jsonform.canonical(log(0)))
    for number, step in enumerate(history, start=2):
        now += step.passed_ms
        retention = effective(retention, max_entries=step.max_entries, max_age_days=step.max_age_days)
        yield change(number, now, ChangeKind.LOG_APPENDED, journal.appended("{}", retention))


def change(seq: int, ms: int, kind: ChangeKind, text: str) -> Change:
    author, payload = Author("assistant", "pi"), Payload(text=text)
    return Change(seq, str(seq), Stamp(ms, 0, "laptop"), kind, "log", None, author, None, None, "", "", payload)


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


@given(st.integers(0, 253_402_300_799_999))
def test_every_time_comes_back_to_the_millisecond(ms: int) -> None:
    assert journal.milliseconds(journal.timestamp(ms)) == ms


@pytest.mark.parametrize(
    ("ts", "ms"), [("2027-01-15T10:00:00+02:00", 1_800_000_000_000), ("2027-01-15T08:00:00.1239Z", 1_800_000_000_123)]
)
def test_times_that_other_programs_wrote_are_read_with_their_offset_and_down_to_the_millisecond(
    ts: str, ms: int
) -> None:
    assert journal.milliseconds(ts) == ms


def test_a_time_that_cannot_be_read_has_no_age() -> None:
    assert journal.milliseconds("yesterday") is None
