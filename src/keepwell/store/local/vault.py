"""The local store as a whole, while no engine has it open: `store.port.Vault`."""

import logging
from pathlib import Path
from typing import Final

import apsw

from keepwell.model.change import Change
from keepwell.model.identity import uuid7
from keepwell.model.scope import Scope
from keepwell.store.local import restore
from keepwell.store.local.complaints import translated
from keepwell.store.local.engine import LocalStore
from keepwell.store.local.link import Link, quiet_mode
from keepwell.store.local.rebuild import rebuild
from keepwell.store.local.rows import to_change, to_scope
from keepwell.store.local.verify import verify
from keepwell.store.port import Finding, Rebuilt, Restored
from keepwell.store.world import World

_log: Final = logging.getLogger(__name__)


class LocalVault:
    """A database file, the folders beside it, and what can be done to them."""

    def __init__(self, database: Path, *, device: str, world: World) -> None:
        """Nothing is opened, made or changed by this."""
        self._database: Final = database
        self._device: Final = device
        self._world: Final = world

    def verify(self) -> tuple[Finding, ...]:  # noqa: D102 - the port's docstring holds
        return verify(self._database, self._world)

    def restore(self, snapshot: Path, *, with_forgotten: bool) -> Restored:  # noqa: D102
        forgotten = [] if with_forgotten else self._forgotten()

        def forget_again(copy: Path) -> None:
            if forgotten:
                self._forget_in(copy, forgotten)

        with translated(self._database):
            plan, manifest = restore.restore(snapshot, self._database, self._world, prepare=forget_again)
        parked = str(self._database.parent / plan.parked)
        return Restored(plan.snapshot, parked, len(manifest["categories"]), manifest["coverage"]["backups"])

    def _forgotten(self) -> list[tuple[Change, Scope | None]]:
        """The changes by which this store has erased something; none where it cannot be read any more."""
        if not self._database.exists():
            return []
        try:
            link = Link(self._database, quiet_mode(self._database), self._world, busy_timeout_ms=1_000)
            try:
                scopes = {row["uid"]: to_scope(row) for row in link.rows("scope_summaries")}
                changes = [to_change(row) for row in link.rows("forgetting_changes")]
            finally:
                link.close()
        except apsw.Error as error:
            _log.warning("what was forgotten cannot be read, so the snapshot brings it back: %s", error)
            return []
        return [(change, scopes.get(change.scope_uid or "")) for change in changes]

    def _forget_in(self, copy: Path, forgotten: list[tuple[Change, Scope | None]]) -> None:
        world = self._world
        store = LocalStore(
            copy, device=self._device, world=world, new_uid=lambda: uuid7(world.now_ms(), world.random_bytes(10))
        )
        try:
            with store.writing() as writer:
                for change, scope in forgotten:
                    writer.take(change, scope)
            store.scrub()
        finally:
            store.close()

    def finish_restore(self) -> str:  # noqa: D102
        with translated(self._database):
            return str(self._database.parent / restore.finish(self._database).parked)

    def undo_restore(self) -> str:  # noqa: D102
        with translated(self._database):
            return restore.undo(self._database).snapshot

    def rebuild(self, *, dry_run: bool) -> Rebuilt:  # noqa: D102
        with translated(self._database):
            return rebuild(self._database, device=self._device, world=self._world, dry_run=dry_run)
