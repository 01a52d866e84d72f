"""Making private files and folders so that a crash leaves a whole one or none."""

import errno
import os
from pathlib import Path
from typing import Final

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700

NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What a file system without hard links answers."""


def make_private_folders(folder: Path) -> None:
    """Make `folder` and its missing parents, each with mode 0700; folders that exist keep their permissions."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file with mode 0600; `FileExistsError` if there is one."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))


def publish(draft: Path, target: Path) -> None:
    """Give a finished file its name, durably; `FileExistsError` if the name is taken, and then nothing changes."""
    sync(draft)
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _rename_to_free_name(draft, target)
    else:
        draft.unlink()
    sync(target.parent)


def _rename_to_free_name(draft: Path, target: Path) -> None:
    # for file systems without hard links: reserve the name first, then replace the reservation
    make_private_file(target)
    draft.replace(target)


def sync(path: Path) -> None:
    """Make what a file or a folder holds durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
