"""What is not as it should be around a store: files of categories, permissions, the disk."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from keepwell.model import jsonform
from keepwell.model.category import check_name
from keepwell.model.errors import Corrupt, Denied, Invalid, KeepwellError
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_index import CategoryIndex
from keepwell.store.port import Finding

_LITTLE_SPACE: Final = 100 * 1024 * 1024
_ALL: Final = 2**31
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def findings(reader: CategoryIndex, files: CategoryFiles, database: Path) -> Iterator[Finding]:
    """Everything that is found; nothing is changed."""
    yield from _documents(reader)
    yield from _strangers(reader, files)
    for name in reader.badly_indexed():
        yield Finding("index", name, "search does not see what it says.", "Run keepwell doctor --fix.", mendable=True)
    for staged in files.staged():
        yield Finding(
            "staged",
            staged.name,
            "a staged file waits for the next write to decide what becomes of it.",
            "Run keepwell doctor --fix, or write something.",
            mendable=True,
        )
    yield from too_open(database, files)
    yield from _space(database.parent)


def _documents(reader: CategoryIndex) -> Iterator[Finding]:
    behind = reader.unsettled()
    for category in reader.categories(after="", limit=_ALL):
        name = category.name
        try:
            document = reader.document(name)
            missing = reader.lacks_file(name)
        except KeepwellError as error:
            yield Finding("unreadable", name, error.sentence, error.hint)
            continue
        if document and document.edited_outside:
            yield Finding(
                "edited_outside",
                name,
                "its file was edited outside keepwell.",
                "The next write takes the edit in as a version of its own; to undo it, run keepwell revert.",
            )
        if missing:
            yield Finding("missing_file", name, "its file is missing.", "Run keepwell doctor --fix.", mendable=True)
        elif name in behind:
            yield Finding(
                "unsettled", name, "its file lacks the newest entries.", "Run keepwell doctor --fix.", mendable=True
            )


def _strangers(reader: CategoryIndex, files: CategoryFiles) -> Iterator[Finding]:
    """Files that no live category owns."""
    for name in sorted(files.names()):
        heading = reader.heading(name)
        if heading and heading.is_live and heading.name == name:
            continue
        try:
            check_name(name)
            data = reader.stranger_bytes(name)
            if data is None:
                continue
            jsonform.parse(data.decode())
            problem, remedy = "no category has this file.", "Write to it with keepwell to take it in, or move it away."
        except UnicodeDecodeError:
            problem, remedy = "no category has this file, and it is not UTF-8.", "Move it away."
        except (Invalid, Corrupt, Denied) as error:
            problem, remedy = f"no category has this file, and it cannot be one: {error.sentence}", "Move it away."
        yield Finding("unknown_file", ascii(name), problem, remedy)


def too_open(database: Path, files: CategoryFiles) -> Iterator[Finding]:
    """Files and folders of the store that others than their owner may read or write."""
    own = [database, *(database.with_name(database.name + ending) for ending in ("-wal", "-shm", ".key"))]
    for path in (*own, *files.own()):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            yield Finding(
                "too_open",
                str(path),
                f"others may use it (mode {stat.S_IMODE(mode):04o}).",
                "Run keepwell doctor --fix.",
                mendable=True,
            )


def _space(folder: Path) -> Iterator[Finding]:
    free = free_bytes(folder)
    if free is not None and free < _LITTLE_SPACE:
        yield Finding("disk", str(folder), f"only {free:,} bytes of the disk are free.", "Free some space.")


def free_bytes(folder: Path) -> int | None:
    """How many bytes a user may still write there; None where the system does not say."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize
