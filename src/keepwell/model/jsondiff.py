"""What changed between two JSON documents, by JSON Pointer (RFC 6901)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """What was added, removed and changed, each by pointer; added and changed carry the newer value."""

    added: dict[str, Any]
    removed: tuple[str, ...]
    changed: dict[str, Any]


def difference(old: object, new: object) -> Difference:
    """How to get from `old` to `new`: take the removed places away in their order, then put the values in."""
    added: dict[str, Any] = {}
    removed: list[str] = []
    changed: dict[str, Any] = {}
    for change, pointer, value in _walk(old, new, ""):
        match change:
            case "added":
                added[pointer] = value
            case "removed":
                removed.append(pointer)
            case _:
                changed[pointer] = value
    return Difference(added, tuple(removed), changed)


def _walk(old: object, new: object, at: str) -> Iterator[tuple[str, str, object]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _compared(old, new, key, f"{at}/{_escaped(key)}", inside=(key in old, key in new))
    elif isinstance(old, list) and isinstance(new, list):
        # from the end, so that each place is still where its pointer says when it is taken away
        for index in range(len(old) - 1, len(new) - 1, -1):
            yield "removed", f"{at}/{index}", None
        for index in range(len(new)):
            yield from _compared(old, new, index, f"{at}/{index}", inside=(index < len(old), True))
    elif not same(old, new):
        yield "changed", at, new


def _compared(old: Any, new: Any, key: Any, at: str, *, inside: tuple[bool, bool]) -> Iterator[tuple[str, str, object]]:
    match inside:
        case (True, True):
            yield from _walk(old[key], new[key], at)
        case (True, False):
            yield "removed", at, None
        case _:
            yield "added", at, new[key]


def same(old: object, new: object) -> bool:
    """Whether two JSON values are one: to Python True is 1 and 1 is 1.0, to JSON they are not."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    # repr tells 0.0 from -0.0
    return type(old) is type(new) and repr(old) == repr(new)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
