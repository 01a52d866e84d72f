"""Putting a snapshot in a store's place, in renames that can be finished or undone whenever they are interrupted.

A marker file keeps the store closed from the first rename to the last:

    <base>/RESTORE_IN_PROGRESS         which snapshot, which folders; JSON
    <base>/.restore-<time>/            the copy that moves in
    <base>/restore-parked-<time>/      the store that was there before; stays
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw

from keepwell.model.errors import Busy, Corrupt, Denied, KeepwellError, NotFound, Unsupported
from keepwell.store.local.files import PRIVATE_FILE, make_private_folders, sync
from keepwell.store.local.guard import SIDECARS
from keepwell.store.local.link import SQL
from keepwell.store.local.snapshot import DATABASE, read_manifest, verified
from keepwell.store.world import World

MARKER: Final = "RESTORE_IN_PROGRESS"
_FOLDERS: Final = ("categories", "backups")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore does: which items of the store are parked, and which of the snapshot arrive."""

    snapshot: str
    incoming: str
    parked: str
    present: list[str]
    arriving: list[str]


def refuse_half_restored(base: Path) -> None:
    """Raise `Unsupported` while a restore is under way or was interrupted."""
    if (base / MARKER).exists():
        raise Unsupported(
            "a restore of this store was interrupted, so it stays closed.",
            hint="Run keepwell restore --finish, or keepwell restore --undo.",
            marker=base / MARKER,
        )


def restore(
    snapshot: Path, database: Path, world: World, *, prepare: Callable[[Path], None]
) -> tuple[Plan, dict[str, Any]]:
    """Verify the snapshot, park the present store, move the copy in; gives the plan and the manifest.

    `prepare` is given the copy's database before it moves in. `Busy` while a process has the store open, `Corrupt` for
    a snapshot that is not whole: nothing was touched.
    """
    base = database.parent
    refuse_half_restored(base)
    manifest = read_manifest(snapshot)
    if found := verified(snapshot, world):
        raise Corrupt(f"the snapshot is not whole: {found[0]}", hint="Nothing was touched.", faults=found)
    with alone(database):
        moment = datetime.fromtimestamp(world.now_ms() / 1000, tz=UTC).strftime("%Y-%m-%dT%H-%M-%S")
        incoming = f".restore-{moment}"
        try:
            make_private_folders(base)
            _copy_in(snapshot, base / incoming, database.name)
            prepare(base / incoming / database.name)
            items = _items(database.name)
            plan = Plan(
                snapshot=str(snapshot),
                incoming=incoming,
                parked=f"restore-parked-{moment}",
                present=[item for item in items if (base / item).exists()],
                arriving=[item for item in items if (base / incoming / item).exists()],
            )
            mark(base, plan)
        except OSError as error:
            shutil.rmtree(base / incoming, ignore_errors=True)
            raise Denied(f"the store's folder cannot be written ({error.strerror}).", folder=base) from None
        except KeepwellError:
            shutil.rmtree(base / incoming, ignore_errors=True)
            raise
    finish(database)
    return plan, manifest


@contextmanager
def alone(database: Path) -> Iterator[None]:
    """A block during which no process has the database open, as far as its journal can tell."""
    if not database.exists():
        yield
        return
    try:
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error:
        # what SQLite cannot open, nobody uses
        yield
        return
    try:
        connection.execute(SQL["lock_exclusively"])
        connection.execute(SQL["begin_exclusive"])
    except (apsw.BusyError, apsw.LockedError):
        connection.close()
        raise Busy(
            "a process still has the store open.", hint="Stop every keepwell (close the assistants), then try again."
        ) from None
    except apsw.Error:
        # a damaged database cannot be locked, and must be replaceable
        connection.close()
        yield
        return
    try:
        yield
    finally:
        with suppress(apsw.Error):
            connection.execute(SQL["rollback"])
            connection.close()


def _copy_in(snapshot: Path, incoming: Path, database_name: str) -> None:
    make_private_folders(incoming)
    for source, name in ((DATABASE, database_name), (f"{DATABASE}.key", f"{database_name}.key")):
        if (snapshot / source).exists():
            shutil.copyfile(snapshot / source, incoming / name)
            (incoming / name).chmod(PRIVATE_FILE)
            sync(incoming / name)
    for folder in _FOLDERS:
        if (snapshot / folder).exists():
            make_private_folders(incoming / folder)
            for source_file in sorted((snapshot / folder).glob("*.json")):
                copy = incoming / folder / source_file.name
                shutil.copyfile(source_file, copy)
                copy.chmod(PRIVATE_FILE)
                sync(copy)
            sync(incoming / folder)
    sync(incoming)


def _items(database_name: str) -> list[str]:
    """Everything that a store consists of."""
    sidecars = [database_name + ending for ending in (*SIDECARS, ".key")]
    return [database_name, *sidecars, *_FOLDERS]


def mark(base: Path, plan: Plan) -> None:
    """Keep the store closed from now on, and say durably what is to be done."""
    draft = base / f".{MARKER}.part"
    draft.write_text(json.dumps(asdict(plan), ensure_ascii=False, indent=2), encoding="utf-8")
    draft.chmod(PRIVATE_FILE)
    sync(draft)
    draft.rename(base / MARKER)
    sync(base)


def _plan(base: Path) -> Plan:
    try:
        return Plan(**json.loads((base / MARKER).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise NotFound("no restore is under way.", folder=base) from None
    except (OSError, ValueError, TypeError):
        raise Corrupt(
            f"{MARKER} cannot be read.",
            hint="Move what lies in the folder restore-parked-… back by hand, then remove the marker.",
            folder=base,
        ) from None


def finish(database: Path) -> Plan:
    """Do the renames that are still to be done: whatever was done before is left as it is."""
    base = database.parent
    plan = _plan(base)
    incoming, parked = base / plan.incoming, base / plan.parked
    make_private_folders(parked)
    for item in plan.present:
        # SQLite may have cleared away a file of its own since the plan was made
        if (base / item).exists() and not (parked / item).exists():
            (base / item).rename(parked / item)
    for item in plan.arriving:
        if (incoming / item).exists():
            (incoming / item).rename(base / item)
    sync(parked)
    _end(base, incoming)
    return plan


def undo(database: Path) -> Plan:
    """Move the store that was there before back; the snapshot's copy is removed."""
    base = database.parent
    plan = _plan(base)
    incoming, parked = base / plan.incoming, base / plan.parked
    make_private_folders(incoming)
    for item in plan.arriving:
        # what has no predecessor, or whose predecessor is parked, is the snapshot's
        is_new = item not in plan.present or (parked / item).exists()
        if is_new and (base / item).exists():
            (base / item).rename(incoming / item)
    for item in plan.present:
        if (parked / item).exists():
            (parked / item).rename(base / item)
    _end(base, incoming)
    if parked.exists() and not any(parked.iterdir()):
        parked.rmdir()
    return plan


def _end(base: Path, incoming: Path) -> None:
    sync(base)
    (base / MARKER).unlink()
    sync(base)
    shutil.rmtree(incoming, ignore_errors=True)
