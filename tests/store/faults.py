"""A disk that fails: every call that changes it can be made to fail, or to be the last that the process makes.

SQLite goes through a VFS of its own here, everything else through the functions of `os`. `Disk.call` counts the calls
while it is armed; the one whose turn it is raises. In a death every later call raises too, so that nothing that tidies
up after an error can hide what a killed process leaves behind.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

DEATH: Final = 0
"""Instead of an error number: the process dies at the call."""

POWER_LOSS: Final = -1
"""The machine stops at the call, and what was written since a file's last sync is gone or torn."""

_SQLITE_ERRORS: Final = {
    errno.EIO: apsw.IOError,
    errno.ENOSPC: apsw.FullError,
    errno.EACCES: apsw.PermissionsError,
}
_VFS: Final = "failing"


class Died(BaseException):
    """The process is no more. No `except Exception` may live on after it."""


@dataclass
class Disk:
    """Counts the calls that change files below `base`, and fails at one of them."""

    base: Path
    turn: int = 0
    kind: int = errno.EIO
    armed: bool = False
    dead: bool = False
    calls: int = 0
    synced: dict[str, bytes] = field(default_factory=dict)
    injected: int = 0

    def arm(self, turn: int, kind: int) -> None:
        """Let the call of that number, from 1, fail in that way."""
        self.turn, self.kind, self.calls, self.dead, self.armed = turn, kind, 0, False, True
        self.synced = {str(path): path.read_bytes() for path in self._files()}

    def _files(self) -> list[Path]:
        return [path for path in self.base.rglob("*") if path.is_file() and not path.name.endswith("-shm")]

    def call(self, *, sqlite: bool) -> None:
        """One call that changes the disk is about to be made."""
        if not self.armed:
            return
        self.calls += 1
        if self.dead:
            raise (apsw.IOError if sqlite else Died)("dead")
        if self.calls != self.turn:
            return
        self.injected += 1
        if self.kind in (DEATH, POWER_LOSS):
            self.dead = True
            raise (apsw.IOError if sqlite else Died)("died here")
        if sqlite:
            raise _SQLITE_ERRORS[self.kind]("injected")
        raise OSError(self.kind, os.strerror(self.kind))

    def note_sync(self, path: str) -> None:
        """What a file holds now survives a power loss."""
        if self.armed and Path(path).is_file():
            self.synced[path] = Path(path).read_bytes()

    def note_name(self, old: str, new: str) -> None:
        """A file, or a folder of files, has another name, too; what it holds is as durable as before."""
        for path, data in list(self.synced.items()):
            if path == old or path.startswith(old + "/"):
                self.synced[new + path.removeprefix(old)] = data

    def disarm(self) -> None:
        """Back to a disk that works; after a power loss with what it held at the last syncs."""
        self.armed = False
        if not (self.dead and self.kind == POWER_LOSS):
            return
        for path in self._files():
            kept = self.synced.get(str(path), b"")
            now = path.read_bytes()
            if now != kept:
                # every other file is torn: the beginning of what was written last is there
                torn = now[: len(now) // 2] if self.turn % 2 and len(now) > len(kept) and not kept else kept
                path.write_bytes(torn)


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.call(sqlite=True)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.call(sqlite=True)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.call(sqlite=True)
        super().xSync(flags)
        if self._name:
            self._disk.note_sync(str(self._name))


class _FailingVfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        super().__init__(_VFS, "unix", makedefault=True)
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if flags[0] & apsw.SQLITE_OPEN_CREATE:
            self._disk.call(sqlite=True)
        return _FailingFile(self._disk, name, flags)

    def xDelete(self, name: str, sync_dir: bool) -> None:  # noqa: N802
        self._disk.call(sqlite=True)
        super().xDelete(name, sync_dir)


@contextmanager
def failing_disk(base: Path) -> Iterator[Disk]:
    """A block in which files below `base` lie on a disk that can be made to fail."""
    disk = Disk(base)
    vfs = _FailingVfs(disk)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("link", "replace", "rename", "unlink", "mkdir", "rmdir", "fsync", "open"):
            patch.setattr(os, name, _failing(disk, name, getattr(os, name)))
        try:
            yield disk
        finally:
            disk.armed = False
            apsw.set_default_vfs("unix")
            vfs.unregister()


def _failing(disk: Disk, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if name == "fsync":
            disk.call(sqlite=False)
            result = real(*args, **options)
            disk.note_sync(os.path.realpath(f"/proc/self/fd/{args[0]}"))
            return result
        writes = name != "open" or args[1] & (os.O_WRONLY | os.O_RDWR)
        if writes and str(args[0]).startswith(str(disk.base)):
            disk.call(sqlite=False)
        result = real(*args, **options)
        if name in ("link", "replace", "rename"):
            disk.note_name(str(args[0]), str(args[1]))
        return result

    return call
