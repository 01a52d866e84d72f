"""Settings: every setting once, with its doc, and where each value came from.

A flag wins over the environment, the environment over the configuration file, the file over the default. `look_around`
reads what the process was started in; `resolve` works on what it is given.
"""

import difflib
import os
import platform
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from keepwell.model.errors import Denied, Invalid, NotFound
from keepwell.model.text import check_text
from keepwell.operations import TOOLSETS

LABEL_BYTES: Final = 256
APPLICATION: Final = "keepwell"


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that a launch runs with. Paths are absolute; times in milliseconds.

    `workspace` is None only where the working directory is gone; `workspace_is_explicit` tells that somebody named it.
    """

    database: Path
    workspace: Path | None
    workspace_is_explicit: bool
    client: str
    session: str | None
    model: str | None
    allow_write: bool
    allow_global_write: bool
    no_global_read: bool
    tools: tuple[str, ...]
    device: str
    journal_mode: Literal["wal", "delete"]
    synchronous: Literal["full", "normal"]
    sqlite_busy_timeout_ms: int
    lock_deadline_ms: int
    shared_mount: Literal["auto", "yes", "no"]
    log_level: str
    log_file: Path | None

    @property
    def base_dir(self) -> Path:
        """The folder that holds the store."""
        return self.database.parent


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names in each source, how its text is read, and what it is for."""

    name: str
    doc: str
    flag: str | None = None
    variable: str | None = None
    file_key: str | None = None
    read: "Callable[[str, Any, Surroundings], Any] | None" = None
    default: Any = None
    switch: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the process was started in; `cwd` is None where the folder is gone, `home` where none is known."""

    environment: Mapping[str, str]
    cwd: Path | None
    home: Path | None
    host: str


@dataclass(frozen=True, slots=True)
class Value:
    """One setting's value and where it came from, in words."""

    setting: Setting
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with their origins. `chosen` names the settings that are not at their default."""

    settings: Settings
    values: tuple[Value, ...]
    config_file: Path | None

    @property
    def chosen(self) -> frozenset[str]:
        """The names of the settings that somebody set."""
        return frozenset(value.setting.name for value in self.values if value.origin != "default")


def look_around() -> Surroundings:
    """The environment, working directory, home directory and host name of this process."""
    try:
        cwd: Path | None = Path.cwd()
    except OSError:
        cwd = None
    try:
        home: Path | None = Path.home()
    except RuntimeError:
        home = None
    return Surroundings(dict(os.environ), cwd, home, platform.node())


def _path(name: str, value: Any, around: Surroundings) -> Path:
    text = _text(name, value, around)
    if "\0" in text:
        raise Invalid(f"{name} holds a NUL character.")
    path = _expanded(name, text, around)
    if path.is_absolute():
        return path
    if around.cwd is None:
        raise Invalid(f"{name} is relative, and the working directory is gone.", hint="Give an absolute path.")
    return around.cwd / path


def _expanded(name: str, text: str, around: Surroundings) -> Path:
    path = Path(text)
    if path.parts[:1] != ("~",):
        return path
    if around.home is None:
        raise Invalid(f"{name} starts with ~, and no home directory is known.", hint="Give an absolute path.")
    return around.home.joinpath(*path.parts[1:])


def _text(name: str, value: Any, _around: Surroundings) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{name} must be text.")
    return check_text(name, value, max_bytes=4_096)


def _label(name: str, value: Any, around: Surroundings) -> str:
    return check_text(name, _text(name, value, around), max_bytes=LABEL_BYTES)


def _one_of(*words: str) -> Callable[[str, Any, Surroundings], str]:
    def read(name: str, value: Any, _around: Surroundings) -> str:
        if value not in words:
            raise Invalid(f"{name} is {_shown(value)}; it must be one of {', '.join(words)}.")
        return str(value)

    return read


def _whole_number(minimum: int, maximum: int) -> Callable[[str, Any, Surroundings], int]:
    def read(name: str, value: Any, _around: Surroundings) -> int:
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
        if not isinstance(number, int) or isinstance(number, bool) or not minimum <= number <= maximum:
            raise Invalid(f"{name} is {_shown(value)}; it must be a whole number from {minimum} to {maximum}.")
        return number

    return read


def _toolsets(name: str, value: Any, around: Surroundings) -> tuple[str, ...]:
    words = [word.strip() for word in _text(name, value, around).split(",") if word.strip()]
    if words == ["all"]:
        return TOOLSETS
    for word in words:
        if word not in TOOLSETS:
            raise Invalid(f"{name} names {_shown(word)}; toolsets are {', '.join(TOOLSETS)}, or all.")
    if not words:
        raise Invalid(f"{name} names no toolset; toolsets are {', '.join(TOOLSETS)}, or all.")
    return tuple(dict.fromkeys(words))


def _shown(value: Any) -> str:
    return ascii(value)[:60]


SETTINGS: Final = (
    Setting(
        "database",
        "The database file; its folder is the base directory. Default: memory.db in the base directory.",
        flag="--db",
        read=_path,
    ),
    Setting(
        "base_dir",
        "The folder that holds the store. Default: keepwell in $XDG_DATA_HOME, else in ~/.local/share.",
        variable="MCP_MEMORY_DIR",
        file_key="storage.base_dir",
        read=_path,
    ),
    Setting(
        "workspace",
        "The folder whose project the lessons belong to. Default: the working directory.",
        flag="--workspace",
        variable="MCP_GATEWAY_WORKSPACE",
        read=_path,
    ),
    Setting("client", "The assistant's name, for attribution.", flag="--client", read=_label, default="unknown"),
    Setting("session", "The assistant's session, for attribution.", flag="--session", read=_label),
    Setting("model", "The assistant's model, for attribution.", flag="--model", read=_label),
    Setting("allow_write", "Let assistants change lessons of this project.", flag="--allow-write", switch=True),
    Setting(
        "allow_global_write",
        "Let assistants change global lessons too; needs --allow-write.",
        flag="--allow-global-write",
        switch=True,
    ),
    Setting("no_global_read", "Keep global lessons out of this launch.", flag="--no-global-read", switch=True),
    Setting(
        "tools",
        f"Toolsets to offer over MCP, separated by commas: {', '.join(TOOLSETS)}, or all.",
        flag="--tools",
        read=_toolsets,
        default=TOOLSETS,
    ),
    Setting(
        "device",
        "This machine's name in stamps. Default: the host's name.",
        variable="MCP_DEVICE",
        file_key="acl.device_name",
        read=_label,
    ),
    Setting(
        "journal_mode",
        "SQLite's journal: wal, or delete. A shared file system gets delete whatever is set.",
        file_key="storage.journal_mode",
        read=_one_of("wal", "delete"),
        default="wal",
    ),
    Setting(
        "synchronous",
        "full: a write survives a power loss. normal: the last writes may not.",
        file_key="storage.synchronous",
        read=_one_of("full", "normal"),
        default="full",
    ),
    Setting(
        "sqlite_busy_timeout_ms",
        "How long one statement waits for a lock, in milliseconds, before it is tried anew.",
        file_key="storage.sqlite_busy_timeout_ms",
        read=_whole_number(0, 60_000),
        default=200,
    ),
    Setting(
        "lock_deadline_ms",
        "How long one call waits for locks in all, in milliseconds; then it says that the store is busy.",
        file_key="storage.lock_deadline_ms",
        read=_whole_number(1, 600_000),
        default=10_000,
    ),
    Setting(
        "shared_mount",
        "Whether the base directory lies on a network or shared file system: auto finds out, yes and no decide.",
        variable="KEEPWELL_SHARED_MOUNT",
        file_key="storage.shared_mount",
        read=_one_of("auto", "yes", "no"),
        default="auto",
    ),
    Setting(
        "log_level",
        "What is logged: error, warning, info or debug.",
        variable="KEEPWELL_LOG_LEVEL",
        file_key="log.level",
        read=_one_of("error", "warning", "info", "debug"),
        default="warning",
    ),
    Setting(
        "log_file",
        "A file for the log instead of standard error.",
        flag="--log-file",
        variable="KEEPWELL_LOG_FILE",
        file_key="log.file",
        read=_path,
    ),
)
"""Every setting, in the order in which `keepwell config` shows them."""

CONFIG_VARIABLES: Final = {
    "MCP_MEMORY_CONFIG": "The configuration file, instead of looking for keepwell/config.toml.",
    "MCP_MEMORY_REQUIRE_CONFIG": "1, true, yes or on: refuse to start without a configuration file.",
}


def resolve(flags: Mapping[str, Any], around: Surroundings) -> Resolved:
    """The settings of a launch; `Invalid` names the source and the setting of a bad value.

    `flags` holds the values that were given on the command line, by setting name; None counts as not given.
    """
    config_file = _find_config(around)
    document = _flattened(config_file) if config_file else {}
    values = {setting.name: _value(setting, flags, document, config_file, around) for setting in SETTINGS}
    settings = _settings(values, around)
    _refuse_contradictions(settings)
    return Resolved(settings, _with_effective(values, settings), config_file)


def _value(
    setting: Setting,
    flags: Mapping[str, Any],
    document: Mapping[str, Any],
    config_file: Path | None,
    around: Surroundings,
) -> Value:
    for raw, source, name in _sources(setting, flags, document, config_file, around):
        if raw is None or raw == "":
            continue
        value = bool(raw) if setting.switch else raw
        if setting.read:
            value = setting.read(name, raw, around)
        return Value(setting, value, source)
    return Value(setting, False if setting.switch else setting.default, "default")


def _sources(
    setting: Setting,
    flags: Mapping[str, Any],
    document: Mapping[str, Any],
    config_file: Path | None,
    around: Surroundings,
) -> Iterable[tuple[Any, str, str]]:
    """Each source's raw value, the origin in words, and the name that an error uses; the winner stands first."""
    # a switch that is off is as good as not given
    flag = flags.get(setting.name) or None
    yield flag, f"flag {setting.flag}", str(setting.flag)
    if setting.variable:
        yield around.environment.get(setting.variable), f"environment {setting.variable}", setting.variable
    if setting.file_key:
        yield document.get(setting.file_key), f"file {config_file}", f"{setting.file_key} in the configuration file"


def _settings(values: Mapping[str, Value], around: Surroundings) -> Settings:
    plain = {name: value.value for name, value in values.items()}
    base_dir = plain.pop("base_dir")
    plain["database"] = plain["database"] or (base_dir or _default_base_dir(around)) / "memory.db"
    plain["workspace_is_explicit"] = plain["workspace"] is not None
    plain["workspace"] = plain["workspace"] or around.cwd
    plain["device"] = plain["device"] or around.host or "unknown"
    return Settings(**plain)


def _with_effective(values: Mapping[str, Value], settings: Settings) -> tuple[Value, ...]:
    """The values as they hold in the end, with computed defaults filled in."""
    effective = {field.name: getattr(settings, field.name) for field in fields(settings)}
    effective["base_dir"] = settings.base_dir
    return tuple(Value(value.setting, effective[name], value.origin) for name, value in values.items())


def _default_base_dir(around: Surroundings) -> Path:
    data_home = Path(around.environment.get("XDG_DATA_HOME", ""))
    if data_home.is_absolute():
        return data_home / APPLICATION
    if around.home is None:
        raise Invalid("no home directory is known.", hint="Name the database with --db.")
    return around.home / ".local" / "share" / APPLICATION


def _refuse_contradictions(settings: Settings) -> None:
    if settings.allow_global_write and not settings.allow_write:
        raise Invalid("--allow-global-write needs --allow-write.", hint="Give both, or neither.")
    if settings.allow_global_write and settings.no_global_read:
        raise Invalid(
            "--allow-global-write and --no-global-read contradict each other.",
            hint="Global lessons can only be changed by a launch that may read them.",
        )


def _find_config(around: Surroundings) -> Path | None:
    named = around.environment.get("MCP_MEMORY_CONFIG")
    if named is not None:
        if not named.strip():
            raise Invalid("MCP_MEMORY_CONFIG is set but empty.", hint="Unset it, or let it name a file.")
        path = _path("MCP_MEMORY_CONFIG", named, around)
        if not path.is_file():
            raise NotFound("MCP_MEMORY_CONFIG names a file that does not exist.", file=path)
        return path
    found = next((path for path in _config_places(around) if path.is_file()), None)
    if found is None and _config_is_required(around):
        raise NotFound(
            "there is no configuration file, and MCP_MEMORY_REQUIRE_CONFIG=1 asks for one.",
            hint="Make it, or name it with MCP_MEMORY_CONFIG.",
            places=", ".join(map(str, _config_places(around))),
        )
    return found


def _config_places(around: Surroundings) -> list[Path]:
    places = []
    config_home = Path(around.environment.get("XDG_CONFIG_HOME", ""))
    if config_home.is_absolute():
        places.append(config_home / APPLICATION / "config.toml")
    if around.home:
        places.append(around.home / ".config" / APPLICATION / "config.toml")
    return places


def _config_is_required(around: Surroundings) -> bool:
    word = around.environment.get("MCP_MEMORY_REQUIRE_CONFIG", "").strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise Invalid(f"MCP_MEMORY_REQUIRE_CONFIG is {_shown(word)}; it must be 1 or 0.")


def _flattened(file: Path) -> dict[str, Any]:
    """The file's values by `table.key`; what no setting knows is refused with the nearest name."""
    known = [setting.file_key for setting in SETTINGS if setting.file_key]
    flat: dict[str, Any] = {}
    for table, content in _parsed(file).items():
        entries = content.items() if isinstance(content, dict) else [("", content)]
        for key, value in entries:
            name = f"{table}.{key}" if key else table
            if name not in known:
                raise Invalid(
                    f"the configuration file sets {_shown(name)}, which no setting knows.{_nearest(name, known)}"
                )
            flat[name] = value
    return flat


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f" The nearest name is {close[0]}." if close else ""


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except OSError as error:
        raise Denied(f"the configuration file cannot be read ({error.strerror}).", file=file) from None
    except UnicodeDecodeError:
        raise Invalid(
            "the configuration file is not in UTF-8.", hint="Save it as UTF-8; UTF-16 cannot be read.", file=file
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"the configuration file is not TOML: {error}.", file=file) from None
