"""Canonical JSON: the published vectors, and the laws that must hold for every document."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepwell.model.errors import Invalid
from keepwell.model.jsonform import MAX_DEPTH, canonical, content_hash, parse

VECTORS = [
    ("{}", 2, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    ('{"a":1}', 12, "8164669836e51c324aa26742645b519732d41a60b8047ebdea8e769ef8565d79"),
    ('{"num":42,"key":"value"}', 33, "f64f3a79776e613817a06d66f5ace6de3cfb9622138d711c7bb273ce22698322"),
    (
        '{"n":18446744073709551616,"m":-9223372036854775808}',
        62,
        "2bb489718b5b3a8699aa072269e4a45df1a7524fc003878f373f0dc0b5c2aee4",
    ),
    (
        '{"b":[1,2.50,1e-5,1e-6,1e16,-0],"a":{"z":[],"y":{}},"Z":null,"é":"x\\u007f/\\u001f\\n","_kind":true}',
        167,
        "3805173a80ca29729b6a3acd241c36e8cbb164801c65f66dce2039bc48aa5ea4",
    ),
    (
        (
            '{"_kind":"log","_retention":{"max_age_days":null,"max_entries":200},'
            '"entries":[{"id":0,"ts":"2026-06-17T09:00:00+00:00","data":{"msg":"hi"}}]}'
        ),
        224,
        "5a4805ad81baf9b216a4d9514305a86cf7ffd274fd4016685e0dc5241913a584",
    ),
]


@pytest.mark.parametrize(("document", "length", "digest"), VECTORS)
def test_published_documents_have_their_published_length_and_hash(document: str, length: int, digest: str) -> None:
    text = canonical(parse(document))
    assert len(text.encode()) == length
    assert content_hash(text) == digest


@pytest.mark.parametrize(
    ("number", "form"),
    [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.00001, "0.00001"),
        (0.0000123, "0.0000123"),
        (1e-6, "1e-6"),
        (1.5e-7, "1.5e-7"),
        (1e-10, "1e-10"),
        (1e15, "1000000000000000.0"),
        (9007199254740992.0, "9007199254740992.0"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
    ],
)
def test_a_float_has_the_published_form(number: float, form: str) -> None:
    assert canonical(number) == form


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=30,
)


@given(json_values)
def test_every_value_reads_back_the_same_from_its_canonical_form(value: object) -> None:
    text = canonical(value)
    again = parse(text)
    assert again == value
    assert canonical(again) == text


@given(json_values)
def test_the_canonical_form_is_json_that_any_reader_takes(value: object) -> None:
    assert json.loads(canonical(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_never_taken_for_a_whole_number(number: float) -> None:
    again = parse(canonical(number))
    assert isinstance(again, float)
    assert math.copysign(1, again) == math.copysign(1, number)


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993.5",
        "18446744073709551617",
        "-9223372036854775809",
        "0.1000000000000000055511151231257827",
        "1e400",
        "1" * 401,
    ],
)
def test_a_number_that_would_change_is_refused(number: str) -> None:
    with pytest.raises(Invalid, match="number"):
        parse(f'{{"n": {number}}}')


@pytest.mark.parametrize("number", ["9007199254740993", "-9223372036854775808", "18446744073709551615", "0.1"])
def test_a_number_that_can_be_kept_is_kept_to_the_digit(number: str) -> None:
    assert canonical(parse(number)) == number


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ('{"a": 1, "a": 2}', "'a'"),
        ('{"x": {"b": 1, "b": 2}}', "'b'"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": ["\\ud83d"]}', r"a\[0\] holds U\+D83D"),
        ('{"\\udc00": 1}', r"U\+DC00"),
        ('{"a": 1,}', "line 1"),
        ("", "line 1"),
        ("\ufeff{}", "not JSON"),
        ("[" * 100_000, "deeper"),
    ],
)
def test_a_document_that_breaks_a_rule_is_refused_with_the_place(document: str, named: str) -> None:
    with pytest.raises(Invalid, match=named):
        parse(document)


def test_nesting_is_kept_up_to_the_limit_and_refused_beyond() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical(parse(deepest)).count("[") == MAX_DEPTH
    with pytest.raises(Invalid, match=f"deeper than {MAX_DEPTH}"):
        parse(f"[{deepest}]")
