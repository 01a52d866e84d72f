"""Replies as JSON: the one form that MCP and `--json` share."""

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final

RESULT_BYTES: Final = 128 * 1024
"""The largest complete tool result: its text and its structured form together, as JSON in UTF-8."""

# what a reply may still gain after it was measured: a request id and a warning
_ROOM: Final = 1_024


def to_plain(value: object) -> Any:
    """A reply as dicts, lists and scalars: None is left out, and a field that ends in `_at` becomes RFC 3339 text."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: _field(name, item) for name, item in pairs if item is not None}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def _field(name: str, value: Any) -> Any:
    return moment(value) if name.endswith("_at") and isinstance(value, int) else to_plain(value)


def moment(ms: int) -> str:
    """UTC milliseconds as RFC 3339 text, such as `2026-12-01T08:30:00.123Z`."""
    return datetime.fromtimestamp(ms / 1000, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(plain: object) -> str:
    """Compact JSON on one line; non-ASCII stays as it is."""
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def fits(reply: object) -> bool:
    """Whether a reply stays within `RESULT_BYTES` as a tool result, which carries it as text and structured."""
    text = to_json(to_plain(reply))
    return len(text.encode()) + len(to_json(text).encode()) + _ROOM <= RESULT_BYTES
