"""Bringing an older database up to this version: a verified copy first, then each step in a transaction of its own.

A step is a file `migrations/NNNN.sql`, numbered by the version that it leads to. `schema.sql` is what all of them
applied give. Of several processes that upgrade at once one does it and the others find it done.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from keepwell.model.errors import Corrupt
from keepwell.store.local.backup import write_backup
from keepwell.store.local.complaints import translated
from keepwell.store.local.guard import schema_version
from keepwell.store.local.link import Link
from keepwell.store.world import World

MIGRATIONS: Final[Mapping[int, str]] = {}
"""The script that leads to each version after the first; there is none yet."""

_log: Final = logging.getLogger(__name__)

_PATIENCE_MS: Final = 60_000
"""How long a process waits for another one that is upgrading."""


def upgrade(database: Path, world: World, *, migrations: Mapping[int, str] = MIGRATIONS) -> Path | None:
    """Apply the steps that a database lacks; gives the copy that was kept of it, None where nothing was to be done."""
    newest = max(migrations, default=1)
    # the usual case costs no connection; the header never says more than the database is
    if schema_version(database) >= newest:
        return None
    with translated(database):
        link = Link(database, "write", world, busy_timeout_ms=200)
        try:
            link.allow(_PATIENCE_MS)
            link.run_patiently("touch")
            before: int = link.value("user_version")
            if before >= newest:
                return None
            copy = _kept(link, database, before, world)
            for version in range(before + 1, newest + 1):
                _step(link, version, migrations[version])
            _log.warning("the store was upgraded from schema %s to %s; a copy is in %s", before, newest, copy)
            return copy
        finally:
            link.close()


def _kept(link: Link, database: Path, version: int, world: World) -> Path:
    moment = datetime.fromtimestamp(world.now_ms() / 1000, tz=UTC).strftime("%Y-%m-%dT%H-%M-%S")
    # two processes may come here in the same second
    unique = world.random_bytes(4).hex()
    copy = database.with_name(f"{database.name}.schema-{version}.{moment}.{unique}")
    write_backup(link, copy, world)
    return copy


def _step(link: Link, version: int, script: str) -> None:
    link.allow(_PATIENCE_MS)
    link.rows("foreign_keys_off")
    link.run_patiently("begin_write")
    try:
        # another process may have been first
        if link.value("user_version") < version:
            link.script(script)
            link.set_version(version)
            if link.rows("foreign_key_faults"):
                raise Corrupt(f"the upgrade to schema {version} left references that lead nowhere; it was taken back.")
            link.run_patiently("commit")
    finally:
        link.roll_back()
