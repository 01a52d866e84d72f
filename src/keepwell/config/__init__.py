"""Settings: the values of a launch, and where each came from.

A flag wins over the environment, the environment over the configuration file, the file over the default. `look_around`
reads what the process was started in; `resolve` works on what it is given.
"""

import os
import platform
import pwd
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from keepwell.config.document import APPLICATION, find, read
from keepwell.config.settings import CONFIG_VARIABLES, SETTINGS, Setting
from keepwell.config.values import Surroundings, label
from keepwell.model.errors import Invalid

__all__ = [
    "CONFIG_VARIABLES",
    "SETTINGS",
    "Resolved",
    "Setting",
    "Settings",
    "Surroundings",
    "Value",
    "look_around",
    "resolve",
]

UNKNOWN: Final = "unknown"
_DEFAULT: Final = "default"


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
    max_versions: int
    backup_retention_days: int
    admin_devices: tuple[str, ...] | None
    device_categories: tuple[str, ...] | None
    shared_mount: Literal["auto", "yes", "no"]
    log_level: str
    log_file: Path | None

    @property
    def base_dir(self) -> Path:
        """The folder that holds the store."""
        return self.database.parent


@dataclass(frozen=True, slots=True)
class Value:
    """One setting's value and where it came from, in words."""

    setting: Setting
    value: Any
    origin: str = _DEFAULT


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with their origins. `chosen` names the settings that are not at their default."""

    settings: Settings
    values: tuple[Value, ...]
    config_file: Path | None

    @property
    def chosen(self) -> frozenset[str]:
        """The names of the settings that somebody set."""
        return frozenset(value.setting.name for value in self.values if value.origin != _DEFAULT)


def look_around() -> Surroundings:
    """The environment, working directory, home directory and host name of this process."""
    try:
        cwd: Path | None = Path.cwd()
    except OSError:
        cwd = None
    return Surroundings(dict(os.environ), cwd, _home(), platform.node())


def _home() -> Path | None:
    """What HOME says, else what the user database says; None where neither gives an absolute path.

    An empty HOME counts as unset: `Path.home` would take it for the root folder.
    """
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        with suppress(KeyError):
            home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return home if home.is_absolute() else None


def resolve(flags: Mapping[str, Any], around: Surroundings) -> Resolved:
    """The settings of a launch; `Invalid` names the source and the setting of a bad value.

    `flags` holds the values that were given on the command line, by setting name; None counts as not given, and so does
    a switch that is off. An empty variable counts as unset. Nothing is created and nothing but the configuration file
    is read.
    """
    config_file = find(around)
    sources = _Sources(flags, around, config_file, read(config_file) if config_file else {})
    values = {setting.name: sources.value(setting) for setting in SETTINGS}
    settings = _settings({name: value.value for name, value in values.items()}, around)
    _refuse_contradictions(settings)
    return Resolved(settings, tuple(_effective(values, settings)), config_file)


@dataclass(frozen=True, slots=True)
class _Sources:
    flags: Mapping[str, Any]
    around: Surroundings
    config_file: Path | None
    document: Mapping[str, Any]

    def value(self, setting: Setting) -> Value:
        """The value of the strongest source that has one."""
        return next(self._given(setting), Value(setting, False if setting.switch else setting.default))

    def _given(self, setting: Setting) -> Iterator[Value]:
        """One value for each source that has one, the strongest first; a weaker one is not looked at."""
        if (flag := self._flag(setting)) is not None:
            yield self._read(setting, flag, f"flag {setting.flag}", name=str(setting.flag))
        if setting.variable and (text := self.around.environment.get(setting.variable)):
            yield self._read(setting, text, f"environment {setting.variable}", name=setting.variable)
        if setting.file_key in self.document:
            yield self._from_file(setting, str(setting.file_key))

    def _flag(self, setting: Setting) -> Any:
        value = self.flags.get(setting.name)
        return value or None if setting.switch else value

    def _read(self, setting: Setting, raw: Any, origin: str, *, name: str) -> Value:
        return Value(setting, setting.read(name, raw, self.around) if setting.read else bool(raw), origin)

    def _from_file(self, setting: Setting, key: str) -> Value:
        table, _, word = key.partition(".")
        # a file may be read from any working directory: its relative paths would mean something else each time
        anywhere = replace(self, around=replace(self.around, cwd=None))
        try:
            return anywhere._read(
                setting, self.document[key], f"file {self.config_file} [{table}] {word}", name=f"[{table}] {word}"
            )
        except Invalid as error:
            raise Invalid(error.sentence, hint=error.hint, file=self.config_file) from None


def _settings(plain: dict[str, Any], around: Surroundings) -> Settings:
    base_dir = plain.pop("base_dir")
    plain["database"] = plain["database"] or (base_dir or _default_base_dir(around)) / "memory.db"
    plain["workspace_is_explicit"] = plain["workspace"] is not None
    plain["workspace"] = plain["workspace"] or around.cwd
    plain["device"] = plain["device"] or _host_name(around)
    return Settings(**plain)


def _host_name(around: Surroundings) -> str:
    try:
        return label("host name", around.host, around)
    except Invalid:
        return UNKNOWN


def _effective(values: Mapping[str, Value], settings: Settings) -> Iterator[Value]:
    """The values as they hold in the end, with computed defaults filled in."""
    effective = {field.name: getattr(settings, field.name) for field in fields(settings)}
    effective["base_dir"] = settings.base_dir
    named = values["database"].origin
    for name, value in values.items():
        # a database that was named takes the base directory along
        origin = named if name == "base_dir" and named != _DEFAULT else value.origin
        yield Value(value.setting, effective[name], origin)


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
