"""Dates and times that callers name, as UTC milliseconds."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from keepwell.model.errors import Invalid
from keepwell.model.query import Period

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?")
"""Only this: `fromisoformat` also reads dates without hyphens and weeks, as midnight, which ends a day at its start."""

_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def period(after: str | None, before: str | None) -> Period:
    """The span between two moments, each with what it names: a date before means up to the end of its day.

    Dates and times are those of RFC 3339; without an offset they are UTC. `Invalid` names the parameter.
    """
    begin = None if after is None else _first(_read("updated_after", after))
    end = None if before is None else _last(_read("updated_before", before))
    if begin is not None and end is not None and begin > end:
        raise Invalid("updated_after lies behind updated_before, so nothing can be found.")
    return Period(begin, end)


def _read(name: str, text: str) -> date | datetime:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text.upper()) if _TIME.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid(
            f"{name} is no date or time.", hint="Write 2026-12-01, 2026-12-01T08:30:00Z or 2026-12-01T08:30:00+02:00."
        )
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _first(moment: date | datetime) -> int:
    # upwards: a moment within a millisecond excludes that millisecond's beginning
    return -((_EPOCH - _at(moment)) // _MILLISECOND)


def _last(moment: date | datetime) -> int:
    if not isinstance(moment, datetime):
        return _first(moment) + _DAY // _MILLISECOND - 1
    return (moment - _EPOCH) // _MILLISECOND


def _at(moment: date | datetime) -> datetime:
    if isinstance(moment, datetime):
        return moment
    return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
