"""The local store as a whole, while no engine has it open: `store.port.Vault`."""

from pathlib import Path
from typing import Final

from keepwell.store.local import restore
from keepwell.store.local.rebuild import rebuild
from keepwell.store.local.verify import verify
from keepwell.store.port import Finding, Rebuilt, Restored
from keepwell.store.world import World


class LocalVault:
    """A database file, the folders beside it, and what can be done to them."""

    def __init__(self, database: Path, *, device: str, world: World) -> None:
        """Nothing is opened, made or changed by this."""
        self._database: Final = database
        self._device: Final = device
        self._world: Final = world

    def verify(self) -> tuple[Finding, ...]:  # noqa: D102 - the port's docstring holds
        return verify(self._database, self._world)

    def restore(self, snapshot: Path) -> Restored:  # noqa: D102
        plan, manifest = restore.restore(snapshot, self._database, self._world)
        parked = str(self._database.parent / plan.parked)
        return Restored(plan.snapshot, parked, len(manifest["categories"]), manifest["coverage"]["backups"])

    def finish_restore(self) -> str:  # noqa: D102
        return str(self._database.parent / restore.finish(self._database).parked)

    def undo_restore(self) -> str:  # noqa: D102
        return restore.undo(self._database).snapshot

    def rebuild(self, *, dry_run: bool) -> Rebuilt:  # noqa: D102
        return rebuild(self._database, device=self._device, world=self._world, dry_run=dry_run)
