"""The configuration file: where it is looked for, and what it may hold. What cannot be understood is refused."""

import difflib
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

from keepwell.config.settings import SETTINGS
from keepwell.config.values import Surroundings, path, shown
from keepwell.model.errors import Denied, Invalid, NotFound

APPLICATION: Final = "keepwell"

_FOREIGN_MARKS: Final = (
    # the longer marks first: UTF-32 begins like UTF-16
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def find(around: Surroundings) -> Path | None:
    """The configuration file of this launch, or None.

    `MCP_MEMORY_CONFIG` names it (`Invalid` if empty, `NotFound` if missing); else it is the first that exists of the
    usual places. `NotFound` where `MCP_MEMORY_REQUIRE_CONFIG` asks for one and there is none.
    """
    required = _is_required(around)
    named = around.environment.get("MCP_MEMORY_CONFIG")
    if named is not None:
        return _named(named, around)
    places = _places(around)
    found = next(filter(_exists, places), None)
    if found is None and required:
        raise NotFound(
            "there is no configuration file, and MCP_MEMORY_REQUIRE_CONFIG=1 asks for one.",
            hint="Make it, or name it with MCP_MEMORY_CONFIG.",
            places=", ".join(map(str, places)),
        )
    return found


def _is_required(around: Surroundings) -> bool:
    word = around.environment.get("MCP_MEMORY_REQUIRE_CONFIG", "").strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise Invalid(f"MCP_MEMORY_REQUIRE_CONFIG is {shown(word)}; it must be 1, true, yes, on or 0, false, no, off.")


def _named(text: str, around: Surroundings) -> Path:
    if not text.strip():
        raise Invalid("MCP_MEMORY_CONFIG is set but empty.", hint="Unset it, or let it name a file.")
    file = path("MCP_MEMORY_CONFIG", text, around)
    if not _exists(file):
        raise NotFound("MCP_MEMORY_CONFIG names a file that does not exist.", file=file)
    return file


def _places(around: Surroundings) -> list[Path]:
    homes = [Path(around.environment.get("XDG_CONFIG_HOME", ""))]
    if around.home:
        homes.append(around.home / ".config")
    # a relative one is to be ignored (XDG Base Directory Specification)
    return [home / APPLICATION / "config.toml" for home in homes if home.is_absolute()]


def _exists(file: Path) -> bool:
    """Whether there is anything of that name, be it a dangling link: settings that were meant are never passed over."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Denied(f"the configuration file cannot be looked for ({error.strerror}).", file=file) from None
    return True


def read(file: Path) -> dict[str, Any]:
    """The file's values by `table.key`.

    TOML in UTF-8, with or without a byte-order mark. `Invalid` names the table or key that no setting knows with the
    nearest one that there is, or the encoding, or the line that is not TOML.
    """
    try:
        return {name: value for table, content in _parsed(file).items() for name, value in _entries(table, content)}
    except Invalid as error:
        raise Invalid(error.sentence, hint=error.hint, file=file) from None


def _parsed(file: Path) -> dict[str, Any]:
    try:
        if file.exists() and not file.is_file():
            raise Invalid("the configuration file is not a regular file.")
        text = _decoded(file.read_bytes())
    except OSError as error:
        raise Denied(f"the configuration file cannot be read ({error.strerror}).", file=file) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"the configuration file is not TOML: {error}.") from None
    except RecursionError:
        raise Invalid("the configuration file is not TOML that can be read: it is nested too deeply.") from None


def _decoded(data: bytes) -> str:
    marked = next((name for mark, name in _FOREIGN_MARKS if data.startswith(mark)), None)
    # text in UTF-8 holds no NUL, while UTF-16 puts one beside each ASCII letter
    if encoding := marked or ("UTF-16" if b"\0" in data else None):
        raise Invalid(f"the configuration file is in {encoding}; it must be in UTF-8.", hint="Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(
            f"the configuration file is not in UTF-8: line {line} holds the byte 0x{error.object[error.start]:02X}.",
            hint="Save it as UTF-8.",
        ) from None


_KEYS: Final = tuple(setting.file_key for setting in SETTINGS if setting.file_key)
_TABLES: Final = tuple(dict.fromkeys(key.partition(".")[0] for key in _KEYS))


def _entries(table: str, content: Any) -> Iterable[tuple[str, Any]]:
    if table not in _TABLES:
        _refuse_table(table, content)
    if not isinstance(content, dict):
        raise Invalid(f"{table} in the configuration file must be a table.", hint=f"Write [{table}] on its own line.")
    for key, value in content.items():
        name = f"{table}.{key}"
        if name not in _KEYS:
            known = [other.removeprefix(f"{table}.") for other in _KEYS if other.startswith(f"{table}.")]
            raise Invalid(f"[{table}] has no setting {shown(key)}.", hint=f"Did you mean {_nearest(key, known)}?")
        yield name, value


def _refuse_table(table: str, content: Any) -> NoReturn:
    if isinstance(content, dict):
        raise Invalid(f"there is no table {shown(table)}.", hint=f"Did you mean [{_nearest(table, _TABLES)}]?")
    nearest, _, key = _nearest(table, _KEYS).partition(".")
    raise Invalid(f"{shown(table)} stands outside any table.", hint=f"Did you mean [{nearest}] {key}?")


def _nearest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]
