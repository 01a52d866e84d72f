"""The files of categories: each staged whole, given its name after the rows are committed, its predecessor kept.

    categories/<name>.json                      the document
    categories/.staged/<transaction>.<name>.json       written, its rows perhaps not committed
    categories/.staged/<transaction>.<name>.deleted    to be removed, its rows perhaps not committed
    backups/<name>.<time>.<version>.json        what a document was before it was replaced
    backups/<name>.<time>.<version>.deleted.json       what it was before it was deleted
    backups/<name>.<time>.<version>-<n>.json    another text that would have had the same name
    backups/<transaction>.<name>.json.aside     what lay in a document's place and was no file

What becomes of a staged file after a crash is decided by its hash, under the next write lock; see `LocalWriter`.
"""

import errno
import fcntl
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from keepwell.model.errors import Corrupt, Denied, Invalid, KeepwellError
from keepwell.store.local.files import NO_LINKS, PRIVATE_FILE, make_private_folders, sync

LARGEST_FILE: Final = 64 * 1024 * 1024
"""A file that is longer is not read: no log and no document of ours is."""

_ENDING: Final = ".json"
_DELETED: Final = ".deleted"
_PART: Final = ".part"
_ASIDE: Final = ".aside"
_BACKUP: Final = re.compile(
    r"(?P<name>.+)\.(?P<stamp>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)\.(?P<version>\d+)(?P<again>-\d+)?(\.deleted)?\.json",
    re.DOTALL,
)


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
        return self.folder / f"{_within(name)}{_ENDING}"

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
            with os.scandir(self._staging) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
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
        staged = Staged(self._staging / f"{transaction}.{_within(name)}{_ENDING}", name, deletes=False)
        _write(staged.path, text.encode())
        sync(self._staging)
        return staged

    def stage_deletion(self, transaction: str, name: str) -> Staged:
        """Note durably that a document is to be removed."""
        make_private_folders(self._staging)
        make_private_folders(self.backups)
        staged = Staged(self._staging / f"{transaction}.{_within(name)}{_DELETED}", name, deletes=True)
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
        with self._alone():
            # who comes late finds a file that may be newer than what it staged, and must not touch it
            if not staged.path.exists():
                return
            present = self.path(staged.name)
            if _is_unfit(present):
                # a link, a folder, a pipe: it is somebody's, and neither in our way nor a backup of ours
                present.replace(self.backups / f"{staged.path.name}{_ASIDE}")
            elif predecessor:
                self._keep(present, self.backups / predecessor)
            if staged.deletes:
                present.unlink(missing_ok=True)
                sync(self.folder)
                staged.path.unlink(missing_ok=True)
            else:
                staged.path.replace(present)
                sync(self.folder)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A block that one process at a time is in; a process that dies in it leaves it."""
        descriptor = os.open(self._staging, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # where a file system knows no such lock, the write lock of the database has to do
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _keep(self, present: Path, backup: Path) -> None:
        """Give a file a second name, unless it has it; one that another text has stays with that."""
        for place in _places(backup):
            if _has_the_name(present, place):
                return
            try:
                os.link(present, place, follow_symlinks=False)
            except FileNotFoundError:
                return
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                if place.exists():
                    continue
                _copy(present, place)
            sync(self.backups)
            return

    def erase_backups(self, name: str) -> int:
        """Remove every backup of a category for good; gives how many there were."""
        mine = [path for path, found in self._backups() if found["name"] in (name, f".{name}")]
        self.remove_backups(mine)
        if mine:
            sync(self.backups)
        return len(mine)

    def old_backups(self, *, before_ms: int) -> list[Path]:
        """Backups that were made before a time (UTC milliseconds by their name), oldest first."""
        limit = _stamp(before_ms)
        old = [(found["stamp"], path) for path, found in self._backups() if found["stamp"] < limit]
        return [path for _, path in sorted(old)]

    def _backups(self) -> Iterator[tuple[Path, re.Match[str]]]:
        """Our files in the folder of backups, half a copy included; what somebody else put there is not ours."""
        with suppress(FileNotFoundError):
            for path in self.backups.iterdir():
                if found := _BACKUP.fullmatch(path.name.removesuffix(_PART)):
                    yield path, found

    def remove_backups(self, paths: Iterable[Path]) -> None:
        """Remove backups for good."""
        for path in paths:
            path.unlink(missing_ok=True)

    def own(self) -> Iterator[Path]:
        """The folders and files that are ours and for nobody else."""
        for folder in (self.folder, self._staging, self.backups):
            yield folder
            with suppress(FileNotFoundError):
                yield from sorted(path for path in folder.iterdir() if path.suffix in (_ENDING, _DELETED, _PART))


def backup_name(name: str, *, version: int, at_ms: int, deleted: bool = False) -> str:
    """The name of the backup of a version that is replaced at a time; a version has one name for ever."""
    return f"{name}.{_stamp(at_ms)}.{version}{_DELETED if deleted else ''}{_ENDING}"


def _places(backup: Path) -> Iterator[Path]:
    """The name of a backup, and those that it gets where another text has it."""
    yield backup
    stem, ending = backup.name.removesuffix(_ENDING), _ENDING
    if stem.endswith(_DELETED):
        stem, ending = stem.removesuffix(_DELETED), _DELETED + _ENDING
    for number in itertools.count(2):
        yield backup.with_name(f"{stem}-{number}{ending}")


def _is_unfit(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _has_the_name(present: Path, backup: Path) -> bool:
    """Whether a backup of that name says what the file says."""
    with suppress(KeepwellError):
        kept = read_regular(backup)
        return kept is not None and kept == read_regular(present)
    return False


def _within(name: str) -> str:
    """The name, which must not lead out of its folder; who may have which name is for `model.category` to say."""
    if "/" in name or "\0" in name:
        raise Invalid("the name of a category holds a path separator.")
    return name


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
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise


def _copy(present: Path, backup: Path) -> None:
    """For file systems without hard links; half a copy must not take the name."""
    try:
        data = read_regular(present)
    except KeepwellError:
        # what is too long to be read is kept as it is
        present.replace(backup)
        return
    if data is None:
        return
    draft = backup.with_name(f".{backup.name}{_PART}")
    draft.unlink(missing_ok=True)
    _write(draft, data)
    draft.replace(backup)
