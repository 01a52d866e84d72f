"""Logs: categories that only grow at the end and drop what is old, within bounds that they always have."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from keepwell.model import jsonform
from keepwell.model.category import CategoryKind, Retention
from keepwell.model.errors import Invalid
from keepwell.model.text import canonical_json

DEFAULT_ENTRIES: Final = 200
LARGEST_ENTRIES: Final = 100_000
LARGEST_DAYS: Final = 36_500
ENTRY_BYTES: Final = 64 * 1024
"""How long the canonical form of one entry's data may be."""

DEFAULT: Final = Retention(DEFAULT_ENTRIES, None)
"""The bounds of a log that nobody has given others."""

_DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_OWN_KEYS: Final = ("_kind", "_retention", "entries")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `text` is its data as canonical JSON; `ts` the time as the document says it."""

    id: int
    ts: str
    text: str


def kind_of(document: object) -> CategoryKind:
    """A log says so in `_kind` and has a list of entries; everything else is memory."""
    is_log = isinstance(document, dict) and document.get("_kind") == "log" and isinstance(document.get("entries"), list)
    return CategoryKind.LOG if is_log else CategoryKind.MEMORY


def effective(stored: Retention | None, *, max_entries: int | None, max_age_days: int | None) -> Retention:
    """The bounds after an append that names some, all or none: what is not named stays, and a count is always set."""
    before = stored or Retention(None, None)
    return Retention(
        max_entries or before.max_entries or DEFAULT_ENTRIES,
        before.max_age_days if max_age_days is None else max_age_days,
    )


def oldest_kept(retention: Retention, *, next_id: int, now_ms: int) -> tuple[int, int]:
    """The smallest id and the earliest time (UTC milliseconds) that stay; time 0 where age is no bound."""
    smallest = next_id - max(1, retention.max_entries or LARGEST_ENTRIES)
    earliest = 0 if retention.max_age_days is None else now_ms - retention.max_age_days * _DAY_MS
    return smallest, max(0, earliest)


def compose(root: dict[str, Any], retention: Retention, entries: Sequence[Entry]) -> dict[str, Any]:
    """The document of a log: its own keys, `_kind`, `_retention` and the entries, oldest first."""
    bounds = {"max_age_days": retention.max_age_days, "max_entries": retention.max_entries}
    listed = [{"data": jsonform.read(entry.text), "id": entry.id, "ts": entry.ts} for entry in entries]
    return {**root, "_kind": "log", "_retention": bounds, "entries": listed}


def taken_apart(document: dict[str, Any]) -> tuple[dict[str, Any], Retention, tuple[Entry, ...]]:
    """What `compose` put together; `Invalid` for a log whose bounds or entries are not of that form."""
    root = {key: value for key, value in document.items() if key not in _OWN_KEYS}
    return root, _retention(document.get("_retention")), tuple(map(_entry, document["entries"]))


def _retention(value: object) -> Retention:
    if value is None:
        return DEFAULT
    if not isinstance(value, dict):
        raise Invalid("_retention of the log is no object.")
    counts = {"max_entries": LARGEST_ENTRIES, "max_age_days": LARGEST_DAYS}
    for name, largest in counts.items():
        bound = value.get(name)
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or not 1 <= bound <= largest):
            raise Invalid(f"_retention.{name} of the log must be a whole number from 1 to {largest:,}, or null.")
    return effective(
        Retention(value.get("max_entries"), value.get("max_age_days")), max_entries=None, max_age_days=None
    )


def _entry(value: object) -> Entry:
    if not isinstance(value, dict) or not isinstance(value.get("id"), int) or not isinstance(value.get("ts"), str):
        raise Invalid("an entry of the log has no id or no ts.")
    return Entry(value["id"], value["ts"], jsonform.canonical(value.get("data")))


def appended(data: str, retention: Retention) -> str:
    """The text of a change that appends: the entry's data (canonical JSON) and the bounds from then on."""
    bounds = {"max_age_days": retention.max_age_days, "max_entries": retention.max_entries}
    return canonical_json({"data": data, "retention": bounds})


def read_appended(text: str) -> tuple[str, Retention]:
    """What `appended` wrote."""
    value = json.loads(text)
    return value["data"], Retention(**value["retention"])


def timestamp(ms: int) -> str:
    """UTC milliseconds as a log's document says them: RFC 3339 with `+00:00`, without a fraction that is zero."""
    moment = _EPOCH + ms * _MILLISECOND
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")


def milliseconds(ts: str) -> int | None:
    """The time of an entry in UTC milliseconds; None for text that is no time."""
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return None
    # in whole numbers: seconds as a float may lie below their millisecond
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def entries_at(document: dict[str, Any], content_hash: str) -> int | None:
    """How many of a log's entries it had when its hash was this one; None if it never had it since its first entry.

    A log only grows at its end, so each earlier state is a beginning of the canonical text with the same end; one pass
    of the hash over the text finds it.
    """
    head, tail = _around_entries(document)
    if jsonform.content_hash(jsonform.canonical({**document, "entries": []})) == content_hash:
        return 0
    running = hashlib.sha256(head.encode())
    for index, entry in enumerate(document["entries"]):
        piece = jsonform.canonical([[entry]]).removeprefix("[\n  [\n").removesuffix("\n  ]\n]")
        running.update(("," if index else "").encode() + b"\n" + piece.encode())
        so_far = running.copy()
        so_far.update(tail.encode())
        if so_far.hexdigest() == content_hash:
            return index + 1
    return None


def _around_entries(document: dict[str, Any]) -> tuple[str, str]:
    """The canonical text before a log's first entry and after its last."""
    mark = "\ue000entries\ue000"
    text = jsonform.canonical({**document, "entries": [mark]})
    head, _, tail = text.partition(f'\n    "{mark}"')
    return head, tail
