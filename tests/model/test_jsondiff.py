"""Differences: applied to the old document they give the new one."""

from typing import Any

import pytest
from hypothesis import given
from tests.model.test_category import documents

from keepwell.model.jsondiff import Difference, difference, same


def steps(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def put(document: Any, pointer: str, value: Any) -> Any:
    """The document with a value at a JSON Pointer; a list grows at its end."""
    if not (path := steps(pointer)):
        return value
    place = document
    for step in path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if isinstance(place, list):
        place[int(path[-1]) :] = [value, *place[int(path[-1]) + 1 :]]
    else:
        place[path[-1]] = value
    return document


def take_away(document: Any, pointer: str) -> None:
    *path, last = steps(pointer)
    place = document
    for step in path:
        place = place[int(step)] if isinstance(place, list) else place[step]
    del place[int(last) if isinstance(place, list) else last]


def applied(old: Any, found: Difference) -> Any:
    for pointer in found.removed:
        take_away(old, pointer)
    for pointer, value in (*found.changed.items(), *found.added.items()):
        old = put(old, pointer, value)
    return old


@given(documents, documents)
def test_the_difference_leads_from_the_old_document_to_the_new(old: Any, new: Any) -> None:
    found = difference(old, new)
    assert same(applied(old, found), new)


def test_places_at_the_end_of_a_list_are_taken_away_from_the_last_one_on() -> None:
    assert difference({"x": [1, [2, 3], 4, 5]}, {"x": [1, [2]]}).removed == ("/x/3", "/x/2", "/x/1/1")


@given(documents)
def test_a_document_does_not_differ_from_itself(document: Any) -> None:
    assert difference(document, document) == Difference({}, (), {})


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0.0, -0.0), ([], {}), (None, False), ("1", 1)])
def test_what_python_takes_for_equal_and_json_does_not_is_told(old: Any, new: Any) -> None:
    assert difference({"x": old}, {"x": new}).changed == {"/x": new}


def test_keys_with_slashes_and_tildes_are_escaped() -> None:
    assert difference({}, {"a/b": 1, "c~d": 2}).added == {"/a~1b": 1, "/c~0d": 2}
