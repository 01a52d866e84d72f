"""Names, merging, what documents say, and manifests."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepwell.model import jsonform
from keepwell.model.category import (
    DOCUMENT_BYTES,
    check_name,
    checked_document,
    leaves,
    merged,
    merkle_leaf,
    merkle_root,
    name_key,
)
from keepwell.model.errors import Conflict, Invalid

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | st.text()
documents = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
objects = st.dictionaries(st.text(), documents)


@pytest.mark.parametrize("name", ["projects", "workflow_my-laptop", "日本", "a.b", "Ünï 1", "x" * 128, "é" * 64])
def test_a_name_that_is_a_file_name_everywhere_is_kept(name: str) -> None:
    assert check_name(name) == name


UNFIT = {
    "a path": ["..", "../x", "a/b", "a\\b", "a..b"],
    "unseen": ["a\0b", "a\nb", "a\x7fb", "a\u200bb", "a\u202eb", "a\u2028b", "a\ue000b", "\ud800"],
    "the ends": ["", ".", ".hidden", "x.", " x", "x "],
    "signs": ["a:b", "a*b", "a?b", 'a"b', "a<b", "a>b", "a|b"],
    "devices": ["con", "NUL", "Com1", "lpt9.txt", "aux.json", "com\u00b9", "CONIN$", "conout$.txt", "nul .txt"],
    "length": ["x" * 129, "\u00e9" * 65],
}


@pytest.mark.parametrize("name", [pytest.param(name, id=ascii(name)) for names in UNFIT.values() for name in names])
def test_a_name_that_some_system_could_not_keep_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="category"):
        check_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Projects", "projects"), ("é", "e\u0301"), ("ﬁle", "file"), ("STRASSE", "straße"), ("Σ", "ς"), ("Å", "Å")],
)
def test_names_that_a_file_system_may_take_for_one_share_a_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@given(st.text())
def test_the_key_of_a_name_does_not_depend_on_its_form(name: str) -> None:
    forms = {name_key(unicodedata.normalize(form, name)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert len(forms) == 1


@given(documents)
def test_every_document_comes_back_from_its_canonical_text(document: Any) -> None:
    text = checked_document(document)
    assert jsonform.read(text) == jsonform.parse(text)
    assert checked_document(jsonform.read(text)) == text


@given(objects, objects)
def test_a_merge_sets_the_keys_it_names_and_keeps_the_others(before: dict[str, Any], patch: dict[str, Any]) -> None:
    after = merged(before, patch)
    assert all(after[key] == value for key, value in patch.items() if value is not None)
    assert not [key for key, value in patch.items() if value is None and key in after]
    assert all(after[key] == value for key, value in before.items() if key not in patch)
    assert after.keys() <= before.keys() | patch.keys()
    assert merged(after, patch) == after


@given(objects)
def test_merging_nothing_changes_nothing_and_a_null_that_was_there_stays(before: dict[str, Any]) -> None:
    assert merged(before, {}) == before


@pytest.mark.parametrize("present", [[], "text", 1, None, True])
def test_weakness_16_a_merge_onto_what_is_no_object_is_refused_instead_of_dropping_it(present: Any) -> None:
    with pytest.raises(Conflict, match="does not hold an object"):
        merged(present, {"a": 1})


def test_a_document_over_the_limit_is_refused_with_both_sizes() -> None:
    with pytest.raises(Invalid, match=f"the limit is {DOCUMENT_BYTES:,} bytes"):
        checked_document({"x": "y" * DOCUMENT_BYTES})


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [float("nan")]}, "a[0]"),
        ({"a": {"b": float("inf")}}, "a.b"),
        ({"a": "\ud800"}, "a"),
        ({"a": 2**64 + 1}, "18446744073709551617"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(Invalid) as raised:
        checked_document(value)
    assert place in raised.value.sentence


def test_nesting_is_kept_to_the_documented_depth_and_refused_beyond() -> None:
    deepest: Any = 1
    for _ in range(jsonform.MAX_DEPTH):
        deepest = [deepest]
    assert jsonform.parse(checked_document(deepest)) == deepest
    with pytest.raises(Invalid, match="nested deeper"):
        checked_document([deepest])


def test_weakness_36_truth_values_can_be_searched_and_only_what_says_nothing_is_left_out() -> None:
    document = {"b": [True, False, None, ""], "a": {"n": 1.5, "s": "text"}, "e": {}, "l": []}
    assert list(leaves(document)) == [("a.n", "1.5"), ("a.s", "text"), ("b[0]", "true"), ("b[1]", "false")]


HASH_A, HASH_EMPTY = (jsonform.content_hash(jsonform.canonical(value)) for value in ({"a": 1}, {}))


def test_the_manifest_has_the_published_values() -> None:
    assert merkle_leaf("base", HASH_A) == "7eca43cdfaa9661bfacb2498b98dd44778b25a473abb570c125ed38cb8a5bce0"
    assert merkle_leaf("projects", HASH_EMPTY) == "582d8b50b76d3f92e0c8935640a26f24f7f57ad19a2275f74883f534816bb2a1"
    both = [("projects", HASH_EMPTY), ("base", HASH_A)]
    assert merkle_root(both) == "abadc29e838fccbb002201945cc0f10a8e568f888eeafccda165774e1c986d96"
    assert merkle_root(both[::-1]) == merkle_root(both)
    assert merkle_root(both[1:]) == "f6aa6062feb0b3821f3585658684e306306aab3ad492724e0f54193a840612c6"
    assert merkle_root([]) == "empty"
    texts = [("base", "hash1"), ("projects", "hash2")]
    assert merkle_root(texts) == "d7648f78ec4af5308d122c26fe035614e4bd7a6f12bfb26d8bd50b8e408acea0"
