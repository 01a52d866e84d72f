"""Whether a file is a database of ours, judged from its bytes before SQLite may touch it.

Byte positions are those of the SQLite file format (sqlite.org/fileformat2.html, sections 1.3 and 4.1).
"""

import struct
from pathlib import Path
from typing import Final

from keepwell.model.errors import Corrupt, Unsupported

APPLICATION_ID: Final = int.from_bytes(b"KWEL", "big")
SCHEMA_VERSION: Final = 1
SIDECARS: Final = ("-wal", "-shm", "-journal")

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_WAL_HEADER_BYTES: Final = 32
_WAL_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
_RESTORE: Final = "Stop every keepwell, keep a copy of the files, and restore the newest backup."


def refuse_unfit(database: Path) -> None:
    """Raise if an existing file is a link, damaged, foreign or newer; the file is only read."""
    for path in (database, *(database.with_name(database.name + suffix) for suffix in SIDECARS)):
        if path.is_symlink():
            raise Unsupported(
                "the database is a symbolic link, which could lead a write astray.",
                hint="Name the real file with --db.",
                file=path,
            )
    if not database.is_file():
        raise Unsupported("the database's name belongs to something that is not a file.", file=database)
    _judge_header(database)
    _judge_wal(database.with_name(database.name + "-wal"))


def schema_version(database: Path) -> int:
    """The schema version in the header of a sound file; a newer one may still be in the write-ahead log."""
    with database.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    return int(struct.unpack(">i", header[60:64])[0])


def _judge_header(database: Path) -> None:
    with database.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header:
        raise Corrupt("the database file is empty: its contents are lost.", hint=_RESTORE, database=database)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise Corrupt(
            "the file is damaged, or it never was a database.",
            hint=f"{_RESTORE} If it is another program's file, choose another store with --db.",
            database=database,
        )
    (version,) = struct.unpack(">i", header[60:64])
    (application,) = struct.unpack(">I", header[68:72])
    refuse_other(application, version, database)


def refuse_other(application: int, version: int, database: Path) -> None:
    """Raise `Unsupported` unless application id and schema version are ones that this keepwell opens."""
    if application != APPLICATION_ID:
        raise Unsupported(
            "the database belongs to another program; it was not touched.",
            hint="Choose another store with --db.",
            database=database,
        )
    if version > SCHEMA_VERSION:
        raise Unsupported(
            f"the store was written by a newer keepwell (schema {version}, this one knows {SCHEMA_VERSION}); "
            "it was not touched.",
            hint="Upgrade keepwell.",
            database=database,
        )
    if version < 1:
        raise Corrupt(f"the store has no known schema (version {version}).", hint=_RESTORE, database=database)


def _judge_wal(wal: Path) -> None:
    """Raise `Corrupt` for a write-ahead log whose header is damaged: SQLite would silently ignore all it holds."""
    # another process may be writing the header just now: only one that stays wrong is damaged
    if not any(_wal_is_sound(wal) for _ in range(3)):
        raise Corrupt("the store's write-ahead log is damaged.", hint=_RESTORE, file=wal)


def _wal_is_sound(wal: Path) -> bool:
    try:
        with wal.open("rb") as file:
            header = file.read(_WAL_HEADER_BYTES)
    except FileNotFoundError:
        return True
    if len(header) < _WAL_HEADER_BYTES or not any(header):
        # nothing was ever committed to it
        return True
    (magic,) = struct.unpack(">I", header[:4])
    order = _WAL_MAGIC.get(magic)
    return order is not None and _wal_checksum(header[:24], order) == struct.unpack(">II", header[24:])


def _wal_checksum(data: bytes, order: str) -> tuple[int, int]:
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
