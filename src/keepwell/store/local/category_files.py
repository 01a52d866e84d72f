"""The files of categories: each staged whole, given its name after the rows are committed, its predecessor kept.

    categories/<name>.json                      the document
    categories/.staged/<transaction>.<name>.json       written, its rows perhaps not committed
    categories/.staged/<transaction>.<name>.deleted    to be removed, its rows perhaps not committed
    backups/<name>.<time>.<version>.json        what a document was before it was replaced
    backups/<name>.<time>.<version>.deleted.json       what it was before it was deleted

What becomes of a staged file after a crash is decided by its hash, under the next write lock; see `LocalWriter`.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from keepwell.model.errors import Corrupt, Denied
from keepwell.store.local.files import NO_LINKS, PRIVATE_FILE, make_private_folders, sync

LARGEST_FILE: Final = 64 * 1024 * 1024
"""A file that is longer is not read: no log and no document of ours is."""

_ENDING: Final = ".json"
_DELETED: Final = ".deleted"


@dataclass(frozen=True, slots=True)
class Staged:
    """A staged file: of which category, and whether it stands for a deletion."""

    path: Path
    name: str
    deletes: bool


class CategoryFiles:
    """The folders `categories` and `backups` beside the database."""

    def __init__(self, base: Path) -> None:
        self.folder: Final = base / "categories"
        self.backups: Final = base / "backups"
        self._staging: Final = self.folder / ".staged"

    def path(self, name: str) -> Path:
        """Where a category's document lies."""
        return self.folder / f"{name}{_ENDING}"

    def read(self, name: str) -> bytes | None:
        """The file's bytes; None without one. `Corrupt` for a link, a folder or a device of that name."""
        return read_regular(self.path(name))

    def names(self) -> Iterator[str]:
        """The names of all files that could be documents."""
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(_ENDING) and not entry.name.startswith("."):
                    yield entry.name.removesuffix(_ENDING)

    def staged(self) -> list[Staged]:
        """What was staged and not yet decided; usually nothing."""
        try:
            names = sorted(path.name for path in self._staging.iterdir())
        except FileNotFoundError:
            return []
        found = []
        for file in names:
            transaction, _, rest = file.partition(".")
            deletes = rest.endswith(_DELETED)
            name = rest.removesuffix(_DELETED if deletes else _ENDING)
            if transaction and name != rest:
                found.append(Staged(self._staging / file, name, deletes))
        return found

    def read_staged(self, staged: Staged) -> bytes | None:
        """A staged file's bytes; None if it is gone."""
        return read_regular(staged.path)

    def stage(self, transaction: str, name: str, text: str) -> Staged:
        """Write a document durably under a name of its own beside the others."""
        make_private_folders(self._staging)
        make_private_folders(self.backups)
        staged = Staged(self._staging / f"{transaction}.{name}{_ENDING}", name, deletes=False)
        _write(staged.path, text.encode())
        sync(self._staging)
        return staged

    def stage_deletion(self, transaction: str, name: str) -> Staged:
        """Note durably that a document is to be removed."""
        make_private_folders(self._staging)
        make_private_folders(self.backups)
        staged = Staged(self._staging / f"{transaction}.{name}{_DELETED}", name, deletes=True)
        _write(staged.path, b"")
        sync(self._staging)
        return staged

    def discard(self, staged: Staged) -> None:
        """Forget what was staged."""
        staged.path.unlink(missing_ok=True)

    def promote(self, staged: Staged, *, predecessor: str | None) -> None:
        """Carry out what was staged; another process may have done so already.

        `predecessor` names the backup that the present file becomes (`backup_name`); None keeps no backup.
        """
        present = self.path(staged.name)
        if predecessor:
            self._keep(present, self.backups / predecessor)
        if staged.deletes:
            present.unlink(missing_ok=True)
            staged.path.unlink(missing_ok=True)
        else:
            with suppress(FileNotFoundError):
                staged.path.replace(present)
        sync(self.folder)

    def _keep(self, present: Path, backup: Path) -> None:
        """Give a file a second name; one that is taken holds the same already."""
        try:
            os.link(present, backup, follow_symlinks=False)
        except (FileNotFoundError, FileExistsError):
            return
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            _copy(present, backup)
        sync(self.backups)

    def erase_backups(self, name: str) -> int:
        """Remove every backup of a category for good; gives how many there were."""
        mine = [path for path in self.backups.glob("*.json") if _category_of(path) == name]
        for path in mine:
            path.unlink(missing_ok=True)
        if mine:
            sync(self.backups)
        return len(mine)

    def old_backups(self, *, before_ms: int) -> list[Path]:
        """Backups that were made before a time (UTC milliseconds by their name), oldest first."""
        limit = _stamp(before_ms)
        try:
            names = [path.name for path in self.backups.iterdir()]
        except FileNotFoundError:
            return []
        dated = [(name.removesuffix(_ENDING).removesuffix(_DELETED).split("."), name) for name in names]
        old = [(parts[-2], name) for parts, name in dated if len(parts) >= 3 and parts[-1].isdigit()]
        return [self.backups / name for stamp, name in sorted(old) if stamp < limit]

    def remove_backups(self, paths: Iterable[Path]) -> None:
        """Remove backups for good."""
        for path in paths:
            path.unlink(missing_ok=True)


def backup_name(name: str, *, version: int, at_ms: int, deleted: bool = False) -> str:
    """The name of the backup of a version that is replaced at a time; a version has one name for ever."""
    return f"{name}.{_stamp(at_ms)}.{version}{_DELETED if deleted else ''}{_ENDING}"


def _category_of(backup: Path) -> str:
    """The category whose backup a file is; its time and version hold no dot, a name may."""
    return backup.name.removesuffix(_ENDING).removesuffix(_DELETED).rsplit(".", 2)[0]


def _stamp(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, tz=UTC).strftime("%Y-%m-%dT%H-%M-%S")


def read_regular(path: Path) -> bytes | None:
    """A regular file's bytes; None without one. `Corrupt` for what is none, or is too long, `Denied` if unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _unfit(path, "is a symbolic link") from None
        raise Denied(f"a category's file cannot be read ({error.strerror}).", file=path) from None
    facts = os.fstat(descriptor)
    is_regular = stat.S_ISREG(facts.st_mode)
    if not is_regular or facts.st_size > LARGEST_FILE:
        os.close(descriptor)
        raise _unfit(path, f"is longer than {LARGEST_FILE:,} bytes" if is_regular else "is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _unfit(path: Path, what: str) -> Corrupt:
    return Corrupt(
        f"a category's file {what}; it was not read.",
        hint="Move it away; the next write makes the file again from the database.",
        file=path,
    )


def _write(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _copy(present: Path, backup: Path) -> None:
    # for file systems without hard links; half a copy must not take the name
    draft = backup.with_name(f".{backup.name}.part")
    shutil.copyfile(present, draft, follow_symlinks=False)
    draft.chmod(PRIVATE_FILE)
    sync(draft)
    draft.replace(backup)
