"""Every setting once, with its doc: the table behind flags, configuration file, `keepwell config` and the pages."""

from dataclasses import dataclass
from typing import Any, Final

from keepwell.config.values import Read, fixed_path, label, names, one_of, path, toolsets, whole_number
from keepwell.operations import DEFAULT_TOOLSETS, TOOLSETS


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names in each source, how its value is read, and what it is for.

    A switch is a flag without a value; the help of other flags calls the value `takes`. `default` is None where it is
    worked out, or where there is none; then `example` shows a value for the configuration file.
    """

    name: str
    doc: str
    flag: str | None = None
    takes: str = ""
    variable: str | None = None
    file_key: str | None = None
    read: Read | None = None
    default: Any = None
    switch: bool = False
    example: Any = None


SETTINGS: Final = (
    Setting(
        "database",
        "The database file; its folder is the base directory. Default: memory.db in the base directory.",
        flag="--db",
        takes="FILE",
        read=path,
    ),
    Setting(
        "base_dir",
        "The folder that holds the store, as an absolute path. Default: keepwell in $XDG_DATA_HOME, else in "
        "~/.local/share.",
        variable="MCP_MEMORY_DIR",
        file_key="storage.base_dir",
        read=fixed_path,
        example="~/.local/share/keepwell",
    ),
    Setting(
        "workspace",
        "The folder whose project the lessons belong to. Default: the working directory.",
        flag="--workspace",
        takes="FOLDER",
        variable="MCP_GATEWAY_WORKSPACE",
        read=path,
    ),
    Setting(
        "client", "The assistant's name, for attribution.", flag="--client", takes="NAME", read=label, default="unknown"
    ),
    Setting("session", "The assistant's session, for attribution.", flag="--session", takes="NAME", read=label),
    Setting("model", "The assistant's model, for attribution.", flag="--model", takes="NAME", read=label),
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
        takes="NAMES",
        read=toolsets,
        default=DEFAULT_TOOLSETS,
    ),
    Setting(
        "device",
        "This machine's name in stamps. Default: the host's name.",
        variable="MCP_DEVICE",
        file_key="acl.device_name",
        read=label,
        example="my-laptop",
    ),
    Setting(
        "journal_mode",
        "SQLite's journal: wal, or delete. A shared file system gets delete whatever is set.",
        file_key="storage.journal_mode",
        read=one_of("wal", "delete"),
        default="wal",
    ),
    Setting(
        "synchronous",
        "full: a write survives a power loss. normal: the last writes may not.",
        file_key="storage.synchronous",
        read=one_of("full", "normal"),
        default="full",
    ),
    Setting(
        "sqlite_busy_timeout_ms",
        "How long one statement waits for a lock, in milliseconds, before it is tried anew.",
        file_key="storage.sqlite_busy_timeout_ms",
        read=whole_number(0, 60_000),
        default=200,
    ),
    Setting(
        "lock_deadline_ms",
        "How long one call waits for locks in all, in milliseconds; then it says that the store is busy.",
        file_key="storage.lock_deadline_ms",
        read=whole_number(1, 600_000),
        default=10_000,
    ),
    Setting(
        "max_versions",
        "How many versions of a category are kept with their documents.",
        file_key="storage.max_versions",
        read=whole_number(1, 100_000),
        default=100,
    ),
    Setting(
        "backup_retention_days",
        "How many days keepwell compact leaves the backups of categories.",
        file_key="storage.backup_retention_days",
        read=whole_number(1, 36_500),
        default=30,
    ),
    Setting(
        "admin_devices",
        "Devices that may write every category. With neither this nor device_categories, every device may.",
        file_key="acl.admin_devices",
        read=names,
        example=("my-desktop",),
    ),
    Setting(
        "device_categories",
        "Devices that write the category of their own name, and workflow_ with their name, and no other.",
        file_key="acl.device_categories",
        read=names,
        example=("my-laptop", "my-desktop"),
    ),
    Setting(
        "shared_mount",
        "Whether the base directory lies on a network or shared file system: auto finds out, yes and no decide.",
        variable="KEEPWELL_SHARED_MOUNT",
        file_key="storage.shared_mount",
        read=one_of("auto", "yes", "no"),
        default="auto",
    ),
    Setting(
        "log_level",
        "What is logged: error, warning, info or debug.",
        variable="KEEPWELL_LOG_LEVEL",
        file_key="log.level",
        read=one_of("error", "warning", "info", "debug"),
        default="warning",
    ),
    Setting(
        "log_file",
        "A file for the log instead of standard error.",
        flag="--log-file",
        takes="FILE",
        variable="KEEPWELL_LOG_FILE",
        file_key="log.file",
        read=path,
        example="~/keepwell.log",
    ),
)
"""Every setting, in the order in which `keepwell config` shows them."""

CONFIG_VARIABLES: Final = {
    "MCP_MEMORY_CONFIG": "The configuration file, instead of looking for keepwell/config.toml.",
    "MCP_MEMORY_REQUIRE_CONFIG": (
        "1, true, yes or on: refuse to start without a configuration file. 0, false, no, off or empty: do without."
    ),
}
