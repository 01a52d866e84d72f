"""Several categories and lessons within a budget, on each engine."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import ALL, PROJECT_A, PROJECT_B, Clock, MakeLibrary, Uids, world_of
from tests.operations.test_categories import do, write

from keepwell.model.errors import Invalid
from keepwell.model.lesson import Author
from keepwell.operations.category_replies import Context
from keepwell.operations.library import Caller, Library, Permissions
from keepwell.store.memory import MemoryStore
from keepwell.surfaces.render import fits, to_json, to_plain

EVIDENCE = [{"description": "seen"}]
BYTES_A_TOKEN = 4


def context(library: Library, *categories: str, **more: Any) -> Context:
    found: Context = do(library, "context", categories=list(categories), **more)
    return found


def size(found: Context) -> int:
    """How many bytes the categories and lessons of an answer have."""
    return len(to_json(to_plain([*found.categories, *found.lessons])).encode())


def fill(library: Library, categories: dict[str, dict[str, Any]]) -> None:
    for name, data in categories.items():
        write(library, data, category=name)


WIDE = {f"a rather long key with the number {number}": "x" * 40 for number in range(3_000)}


@pytest.mark.parametrize("budget", [100, 200, 1_000, 5_000])
@pytest.mark.parametrize(
    "data",
    [
        WIDE,
        {"k" * 5_000: 1, "a": 2},
        {"日本" * 10 + str(n): "語" * 30 for n in range(500)},
        {"a": "x" * 20_000, "b": 1},
    ],
    ids=["many keys", "a long key", "wide signs", "a long text"],
)
def test_the_budget_bounds_the_answer_whatever_was_left_out(
    library: MakeLibrary, data: dict[str, Any], budget: int
) -> None:
    fill(library(), {"first": {"n": 1}, "big": data, "last": {"n": 2}})
    found = context(library(), "first", "big", "last", budget_tokens=budget)
    assert size(found) <= found.used_tokens * BYTES_A_TOKEN
    assert found.used_tokens <= budget
    assert "first" in [piece.category for piece in found.categories]
    assert sum(len(row.reason) for row in found.trimmed) <= budget * BYTES_A_TOKEN


words = st.text(min_size=1, max_size=30)
contents = st.dictionaries(words, words | st.lists(words) | st.integers(0, 9), max_size=8)


@given(st.lists(contents, min_size=1, max_size=4), st.integers(100, 400))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_documents_stay_within_any_budget_in_their_order_and_none_is_lost(
    documents: list[dict[str, Any]], budget: int
) -> None:
    store = MemoryStore(device="laptop", world=world_of(Clock()), new_uid=Uids())
    caller = Caller(ALL, Author("assistant", "pi"), lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
    library = Library(store, caller, Uids(), lambda _path: True, "test")
    names = [f"cat{number}" for number in range(len(documents))]
    fill(library, dict(zip(names, documents, strict=True)))
    found = context(library, *names, budget_tokens=budget)
    shown = [piece.category for piece in found.categories]
    assert size(found) <= found.used_tokens * BYTES_A_TOKEN <= budget * BYTES_A_TOKEN
    assert shown == [name for name in names if name in shown]
    trimmed = {row.category for row in found.trimmed}
    whole = {piece.category for piece in found.categories if piece.data == documents[names.index(piece.category)]}
    assert {*shown, *trimmed} == set(names)
    assert whole == set(names) - trimmed


def test_the_first_category_has_the_budget_and_a_small_one_behind_a_large_one_still_fits(library: MakeLibrary) -> None:
    fill(library(), {"large": {"text": "x" * 2_000}, "small": {"n": 1}})
    first = context(library(), "large", "small", budget_tokens=650)
    assert [piece.category for piece in first.categories] == ["large", "small"]
    second = context(library(), "large", "small", budget_tokens=200)
    assert [piece.category for piece in second.categories] == ["small"]
    assert [row.category for row in second.trimmed] == ["large"]


def test_what_was_left_out_is_named_and_the_rest_is_counted(library: MakeLibrary) -> None:
    fill(library(), {"notes": WIDE})
    [piece] = context(library(), "notes", budget_tokens=1_000).categories
    assert piece.omitted
    *named, more = piece.omitted
    assert more == f"{len(WIDE) - len(piece.data) - len(named):,} more"
    assert named
    assert not set(named) & set(piece.data)


def test_an_answer_is_never_longer_than_its_surface_carries(library: MakeLibrary) -> None:
    fill(library(), {"one": WIDE, "two": WIDE | {"other": 1}})
    found = context(library(fits=fits), "one", "two", budget_tokens=100_000)
    assert fits(found)
    assert found.categories[0].data
    assert found.categories[0].omitted


def test_fields_narrow_every_category(library: MakeLibrary) -> None:
    fill(library(), {"one": {"a": 1, "b": 2}, "two": {"a": 3, "c": 4}, "three": {"c": 5}})
    found = context(library(), "one", "two", "three", fields="a")
    assert [piece.data for piece in found.categories] == [{"a": 1}, {"a": 3}, {}]


def test_weakness_43_what_is_missing_deleted_or_called_otherwise_has_failed_and_was_not_trimmed(
    library: MakeLibrary,
) -> None:
    fill(library(), {"notes": {"n": 1}, "gone": {"n": 1}})
    do(library(), "delete", category="gone")
    found = context(library(), "gone", "NOTES", "never", "notes")
    assert [row.category for row in found.failed] == ["gone", "NOTES", "never"]
    assert [row.reason.partition(":")[0] for row in found.failed] == ["not_found", "conflict", "not_found"]
    assert [piece.category for piece in found.categories] == ["notes"]
    assert found.trimmed == ()


def test_a_category_named_twice_is_answered_once(library: MakeLibrary) -> None:
    fill(library(), {"notes": {"n": 1}})
    assert len(context(library(), "notes", "notes").categories) == 1


def test_the_newest_lessons_of_this_project_follow_as_many_as_fit(library: MakeLibrary) -> None:
    for number in range(5):
        do(library(), "add", text=f"lesson {number} " + "x" * 200, evidence=EVIDENCE)
    do(library(PROJECT_B), "add", text="of another project", evidence=EVIDENCE)
    fill(library(), {"notes": {"n": 1}})
    found = context(library(), "notes", budget_tokens=200, lessons=4)
    assert [line.text[:8] for line in found.lessons] == ["lesson 4", "lesson 3"]
    assert [(row.category, row.reason[:1]) for row in found.trimmed] == [("lessons", "2")]
    assert size(found) <= found.used_tokens * BYTES_A_TOKEN <= 800
    assert [line.text for line in context(library(PROJECT_B), "notes", lessons=9).lessons] == ["of another project"]


def test_lessons_are_only_those_that_the_launch_may_read(library: MakeLibrary) -> None:
    do(library(), "add", text="global", evidence=EVIDENCE, scope="global")
    do(library(), "add", text="local", evidence=EVIDENCE)
    fill(library(), {"notes": {"n": 1}})
    narrow = library(permissions=Permissions(global_read=False))
    assert [line.text for line in context(library(), "notes", lessons=9).lessons] == ["local", "global"]
    assert [line.text for line in context(narrow, "notes", lessons=9).lessons] == ["local"]


def test_lessons_in_a_context_are_no_counted_delivery(library: MakeLibrary) -> None:
    do(library(), "add", text="a lesson", evidence=EVIDENCE)
    context(library(), "notes", lessons=5)
    assert do(library(), "status").totals.retrievals == 0


def test_the_same_state_gives_the_same_bytes_whatever_happened_beside_it(library: MakeLibrary, clock: Clock) -> None:
    fill(library(), {"b": {"z": 1, "a": 2}, "a": {"n": 1}})
    do(library(), "append", category="log", data={"n": 1})
    before = to_json(to_plain(context(library(), "log", "b", "a", lessons=3)))
    clock.ms += 1_000_000
    write(library(), {"x": 1}, category="other")
    write(library(), {"a": 2, "z": 1}, category="b")
    do(library(), "read", category="log")
    assert to_json(to_plain(context(library(), "log", "b", "a", lessons=3))) == before
    do(library(), "append", category="log", data={"n": 2})
    assert to_json(to_plain(context(library(), "log", "b", "a", lessons=3))) != before


def test_a_category_that_was_not_asked_for_is_not_there(library: MakeLibrary) -> None:
    fill(library(), {"asked": {"n": 1}, "other": {"n": "hidden"}})
    found = to_json(to_plain(context(library(), "asked")))
    assert "asked" in found
    assert "hidden" not in found


@pytest.mark.parametrize(
    "bad", [{"budget_tokens": 99}, {"budget_tokens": 10**6}, {"lessons": 101}, {"categories": []}, {"categories": "a"}]
)
def test_a_bound_out_of_range_is_refused_by_its_name(library: MakeLibrary, bad: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=next(iter(bad))):
        do(library(), "context", **{"categories": ["a"], **bad})
