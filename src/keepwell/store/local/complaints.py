"""What SQLite complains of, told in the words of the error family; its own wording never leaves this module."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from keepwell.model.errors import Busy, Corrupt, Denied, Internal, KeepwellError

_FULL = "the disk is full; nothing was changed."
_FREE_SOME = "Free some space and try again."
BUSY_HINT = "Nothing was changed; make the same call again in a moment."


@contextmanager
def translated(database: Path) -> Iterator[None]:
    """A block whose errors of SQLite and of the file system become errors of the family."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, database) from error
    except OSError as error:
        raise denied(database, error) from error


def translate(error: apsw.Error, database: Path) -> KeepwellError:
    """The error of the family that says what `error` means for the caller."""
    facts: dict[str, Any] = {"database": database, "detail": str(error)}
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.InterruptError() | apsw.ProtocolError():
            return Busy("the store is busy; retry later.", hint=BUSY_HINT, **facts)
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return Corrupt(
                "the store's database is damaged.",
                hint="Stop every keepwell, keep a copy of the file, and restore the newest backup.",
                **facts,
            )
        case apsw.FullError():
            return Denied(_FULL, hint=_FREE_SOME, **facts)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return denied(database)
        case apsw.IOError():
            return Denied(
                "the disk could not be read or written; nothing was changed.",
                hint="Check the disk, its space and the folder's permissions, then try again.",
                **facts,
            )
        case _:
            return Internal("the store could not do this; nothing was changed.", **facts)


def denied(database: Path, error: OSError | None = None) -> Denied:
    """The folder or a file of the store may not be used; names it and the permission in its facts."""
    if error and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Denied(_FULL, hint=_FREE_SOME, folder=database.parent)
    reason = f" ({error.strerror})" if error and error.strerror else ""
    return Denied(
        f"the store may not be written: its folder or a file in it is read-only or out of reach for this user{reason}.",
        hint="Give this user write permission to the folder, or choose another store with --db.",
        folder=database.parent,
        file=error.filename if error and error.filename else database,
    )
