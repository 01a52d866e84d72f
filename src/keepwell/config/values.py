"""From what a source holds to a setting's value: paths, words, numbers. Reads nothing but its arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from keepwell.model.errors import Invalid
from keepwell.model.text import check_text
from keepwell.operations import TOOLSETS

LABEL_BYTES: Final = 256
"""How long the name of a client, session, model or device may be, in UTF-8 bytes."""

PATH_BYTES: Final = 4_096
_ABSOLUTE: Final = "Give an absolute path, or one that starts with ~/."
_TOOLSETS_TOLD: Final = f"toolsets are {', '.join(TOOLSETS)}, or all."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the process was started in; `cwd` is None where the folder is gone, `home` where none is known."""

    environment: Mapping[str, str]
    cwd: Path | None
    home: Path | None
    host: str


Read = Callable[[str, Any, Surroundings], Any]
"""Gives a setting's value from its name in the source, the raw value, and the surroundings; raises `Invalid`."""


def path(name: str, value: Any, around: Surroundings) -> Path:
    """An absolute path; `~/` is the home directory, and a relative path starts at the working directory if any."""
    given = _expanded(name, _text(name, value, max_bytes=PATH_BYTES), around)
    if given.is_absolute():
        return given
    if around.cwd is None:
        raise Invalid(f"{name} is a relative path, which leads nowhere here.", hint=_ABSOLUTE)
    return around.cwd / given


def fixed_path(name: str, value: Any, around: Surroundings) -> Path:
    """An absolute path; `~/` is the home directory, and a relative path is refused.

    For what does not come from somebody's hands: a launcher's working directory would put a store anywhere.
    """
    return path(name, value, replace(around, cwd=None))


def label(name: str, value: Any, _around: Surroundings) -> str:
    """A name for attribution, of 1 to 256 bytes."""
    return _text(name, value, max_bytes=LABEL_BYTES)


def one_of(*words: str) -> Read:
    """One of a few words, in any case."""

    def read(name: str, value: Any, _around: Surroundings) -> str:
        word = value.strip().lower() if isinstance(value, str) else value
        if word not in words:
            raise Invalid(f"{name} is {shown(value)}; it must be one of {', '.join(words)}.")
        return str(word)

    return read


def whole_number(minimum: int, maximum: int) -> Read:
    """A whole number within bounds, both included."""

    def read(name: str, value: Any, _around: Surroundings) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise Invalid(f"{name} is {shown(value)}; it must be a whole number from {minimum:,} to {maximum:,}.")
        return value

    return read


def toolsets(name: str, value: Any, _around: Surroundings) -> tuple[str, ...]:
    """Names of toolsets between commas, each once; `all` means every one."""
    words = [word.strip() for word in _text(name, value, max_bytes=PATH_BYTES).split(",") if word.strip()]
    if not words:
        raise Invalid(f"{name} names no toolset; {_TOOLSETS_TOLD}")
    for word in words:
        if word not in (*TOOLSETS, "all"):
            raise Invalid(f"{name} names {shown(word)}; {_TOOLSETS_TOLD}")
    return TOOLSETS if "all" in words else tuple(dict.fromkeys(words))


def names(name: str, value: Any, _around: Surroundings) -> tuple[str, ...]:
    """A list of names, each of 1 to 256 bytes."""
    if not isinstance(value, list):
        raise Invalid(f"{name} is {shown(value)}; it must be a list of names.", hint='Write ["one", "two"].')
    return tuple(dict.fromkeys(_text(name, item, max_bytes=LABEL_BYTES) for item in value))


def shown(value: Any) -> str:
    """A value as it may stand in an error: short, on one line, nothing that a terminal would obey."""
    return ascii(value)[:60]


def _text(name: str, value: Any, *, max_bytes: int) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{name} is {shown(value)}; it must be text.")
    return check_text(name, value, max_bytes=max_bytes)


def _expanded(name: str, text: str, around: Surroundings) -> Path:
    given = Path(text)
    first = given.parts[0] if given.parts else ""
    if not first.startswith("~"):
        return given
    if first != "~":
        raise Invalid(f"{name} starts with {shown(first)}; only ~/ is expanded.", hint=_ABSOLUTE)
    if around.home is None:
        raise Invalid(f"{name} starts with ~, and no home directory is known.", hint="Give an absolute path.")
    return around.home.joinpath(*given.parts[1:])
