"""Dates and times that callers name."""

import pytest

from keepwell.model.errors import Invalid
from keepwell.model.moment import period

DAY = 86_400_000
NOON = 1_796_212_800_000  # 2026-12-02T12:00:00Z
MIDNIGHT = NOON - DAY // 2


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-12-02", MIDNIGHT),
        ("2026-12-02T12:00:00Z", NOON),
        ("2026-12-02T12:00:00+00:00", NOON),
        ("2026-12-02T14:00:00+02:00", NOON),
        ("2026-12-02T12:00:00", NOON),
        ("2026-12-02t12:00:00z", NOON),
        ("2026-12-02 12:00", NOON),
        ("2026-12-02T12:00:00.001Z", NOON + 1),
        ("2026-12-02T12:00:00.0005Z", NOON + 1),
    ],
)
def test_after_begins_at_the_moment_whatever_its_offset(text: str, ms: int) -> None:
    assert period(text, None).after == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-12-02", MIDNIGHT + DAY - 1),
        ("2026-12-02T12:00:00Z", NOON),
        ("2026-12-02T12:00:00.9999Z", NOON + 999),
        ("2026-12-02T10:00:00-02:00", NOON),
    ],
)
def test_weakness_35_before_includes_the_whole_day_of_a_date(text: str, ms: int) -> None:
    assert period(None, text).before == ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-12-02T25:00", "02.12.2026", "1796212800", "2026-12-02T12"]
)
@pytest.mark.parametrize("side", ["updated_after", "updated_before"])
def test_what_is_no_date_is_refused_with_the_parameters_name(text: str, side: str) -> None:
    with pytest.raises(Invalid, match=side):
        period(text if side == "updated_after" else None, text if side == "updated_before" else None)


@pytest.mark.parametrize("text", ["20261202", "2026-W49-3", "2026-W49", "20261202T1200", "2026-12", "2026-336"])
@pytest.mark.parametrize("side", ["updated_after", "updated_before"])
def test_weakness_35_a_date_in_a_form_that_would_end_its_day_at_midnight_is_refused(text: str, side: str) -> None:
    with pytest.raises(Invalid, match=side):
        period(text if side == "updated_after" else None, text if side == "updated_before" else None)


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(Invalid, match="nothing can be found"):
        period("2026-12-02", "2026-12-01")


def test_a_day_is_a_period() -> None:
    assert period("2026-12-02", "2026-12-02").holds(NOON)
