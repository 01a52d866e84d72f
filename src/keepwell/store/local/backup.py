"""A verified copy of one instant, made while others write."""

from pathlib import Path

from keepwell.model.census import Counts
from keepwell.model.errors import Conflict, Corrupt, Denied, NotFound
from keepwell.store.local.files import make_private_file, publish
from keepwell.store.local.inspect import faults
from keepwell.store.local.link import Link
from keepwell.store.world import World


def write_backup(link: Link, target: Path, world: World) -> Counts:
    """Copy, verify, then give the copy its name; on any failure nothing is left at `target`."""
    if target.exists() or target.is_symlink():
        raise _taken(target)
    draft = target.with_name(f".{target.name}.{world.random_bytes(8).hex()}.part")
    try:
        make_private_file(draft)
        link.copy_to(draft)
        counts = _verified(draft, world)
        publish(draft, target)
    except FileExistsError:
        raise _taken(target) from None
    except FileNotFoundError:
        raise NotFound(
            "output: its folder does not exist.", hint="Make the folder first.", folder=target.parent
        ) from None
    except OSError as error:
        raise Denied(f"output: it cannot be written ({error.strerror}).", file=target) from None
    finally:
        draft.unlink(missing_ok=True)
    return counts


def _taken(target: Path) -> Conflict:
    return Conflict("output: the file exists already; it was not touched.", hint="Name a new file.", file=target)


def _verified(draft: Path, world: World) -> Counts:
    copy = Link(draft, "frozen", world, busy_timeout_ms=0)
    try:
        found = faults(copy)
        counts = Counts(**(copy.row("counts") or {}))
    finally:
        copy.close()
    if found:
        raise Corrupt(
            f"the copy is not whole, so it was not kept: {found[0]}",
            hint="Run keepwell status --check.",
            faults=found,
        )
    return counts
