"""The digest key of a store: thirty-two random bytes beside the database, never in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from keepwell.model.errors import Corrupt
from keepwell.store.local.files import make_private_file, publish

KEY_BYTES: Final = 32


def key_path(database: Path) -> Path:
    """Where the key of a database lies."""
    return database.with_name(database.name + ".key")


def load_key(database: Path, *, random_bytes: Callable[[int], bytes]) -> bytes:
    """The key, made on first use. Of several processes that make it at once, one key wins for all.

    `Corrupt` when the file has another length; `OSError` when it can be neither read nor made.
    """
    path = key_path(database)
    if not path.exists():
        _make(path, random_bytes(KEY_BYTES))
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise Corrupt(
            "the store's key file is damaged.",
            hint="Restore it from a copy, or move it away: a new one is made and older digests stay unverified.",
            file=path,
        )
    return key


def _make(path: Path, key: bytes) -> None:
    draft = path.with_name(f"{path.name}.{key[:8].hex()}.new")
    try:
        make_private_file(draft)
        draft.write_bytes(key)
        publish(draft, path)
    except FileExistsError:
        # another process made the key first
        return
    finally:
        draft.unlink(missing_ok=True)
