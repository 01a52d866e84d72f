"""Replies as JSON: the one form that MCP and `--json` share."""

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any


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
