"""Snapshots: one instant of database, category files and, if wanted, backups, verified before it gets its name.

<snapshot>/manifest.json    what it holds: hashes, sizes, counts, versions, coverage
<snapshot>/memory.db        VACUUM INTO: whole, without a write-ahead log
<snapshot>/memory.db.key    the key of the digests
<snapshot>/categories/      a file for each live category
<snapshot>/backups/         only with backups
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from keepwell.model import jsonform
from keepwell.model.census import Counts
from keepwell.model.errors import Conflict, Corrupt, Denied, Invalid, KeepwellError, NotFound, Unsupported
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_reader import CategoryReader
from keepwell.store.local.complaints import translated
from keepwell.store.local.files import PRIVATE_FILE, make_private_folders, sync
from keepwell.store.local.guard import refuse_unfit
from keepwell.store.local.inspect import faults
from keepwell.store.local.keyfile import key_path
from keepwell.store.local.link import Link
from keepwell.store.world import World

DATABASE: Final = "memory.db"
MANIFEST: Final = "manifest.json"
FORMAT: Final = "keepwell-snapshot"
FORMAT_VERSION: Final = 1
_PREFIX: Final = "snapshot-"
_EVERYTHING: Final = 2**31


@dataclass(frozen=True, slots=True)
class Source:
    """What a snapshot is taken of. The caller holds the write lock, so that files and rows are of one instant.

    `link` is another connection than the reader's: a database cannot be copied inside a transaction.
    """

    link: Link
    reader: CategoryReader
    files: CategoryFiles
    database: Path
    with_backups: bool


def write_snapshot(source: Source, target: Path, world: World, facts: dict[str, Any]) -> dict[str, Any]:
    """Copy, verify, then give the snapshot its name; gives its manifest. On any failure nothing is left at `target`."""
    if target.exists() or target.is_symlink():
        raise Conflict("dir: it exists already; it was not touched.", hint="Name a new folder.", folder=target)
    draft = target.with_name(f".{target.name}.{world.random_bytes(8).hex()}.part")
    try:
        make_private_folders(draft)
        manifest = _fill(source, draft, facts)
        if found := verified(draft, world):
            raise Corrupt(f"the snapshot is not whole, so it was not kept: {found[0]}", hint="Run keepwell verify.")
        draft.rename(target)
        sync(target.parent)
    except OSError as error:
        raise Denied(f"dir: it cannot be written ({error.strerror}).", folder=target) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _fill(source: Source, draft: Path, facts: dict[str, Any]) -> dict[str, Any]:
    copy = draft / DATABASE
    source.link.rows("copy_whole", target=str(copy))
    copy.chmod(PRIVATE_FILE)
    sync(copy)
    if key_path(source.database).exists():
        _copy(key_path(source.database), draft / f"{DATABASE}.key")
    categories = list(_copied_categories(source, draft / "categories"))
    backups = list(_copied_backups(source.files, draft / "backups")) if source.with_backups else []
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **facts,
        "counts": asdict(_counts(source.link)),
        "coverage": {"database": True, "categories": True, "backups": source.with_backups},
        "database": {"file": DATABASE, **_measured(copy)},
        "categories": categories,
        "backups": backups,
    }
    _write(draft / MANIFEST, jsonform.canonical(manifest).encode())
    sync(draft)
    return manifest


def _copied_categories(source: Source, folder: Path) -> Iterator[dict[str, Any]]:
    make_private_folders(folder)
    for category in source.reader.categories(after="", limit=_EVERYTHING):
        copy = folder / f"{category.name}.json"
        data = source.files.read(category.name)
        _write(copy, _committed(source.reader, category.name) if data is None else data)
        row = {"name": category.name, "kind": category.kind.value, "version": category.version}
        yield {**row, "content_hash": category.hash, **_measured(copy)}
    sync(folder)


def _committed(reader: CategoryReader, name: str) -> bytes:
    """The document of a category whose file is missing."""
    document = reader.document(name)
    return document.text.encode() if document else b"null"


def _counts(link: Link) -> Counts:
    return Counts(**(link.row("counts") or {}))


def _copied_backups(files: CategoryFiles, folder: Path) -> Iterator[dict[str, Any]]:
    make_private_folders(folder)
    for original in sorted(files.backups.glob("*.json")):
        _copy(original, folder / original.name)
        yield {"file": original.name, **_measured(folder / original.name)}
    sync(folder)


def _copy(original: Path, copy: Path) -> None:
    _write(copy, original.read_bytes())


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _measured(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def read_manifest(folder: Path) -> dict[str, Any]:
    """A snapshot's manifest; says what is wrong with a folder that is no snapshot of ours."""
    try:
        manifest = jsonform.parse((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"dir: it is no snapshot; it has no {MANIFEST}.", folder=folder) from None
    except (OSError, UnicodeDecodeError, Invalid) as error:
        raise Corrupt(f"the snapshot's {MANIFEST} cannot be read.", folder=folder, detail=error) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Unsupported("dir: it is no snapshot of keepwell.", folder=folder)
    if manifest.get("format_version") != FORMAT_VERSION:
        raise Unsupported("the snapshot was made by a newer keepwell.", hint="Upgrade keepwell.", folder=folder)
    return manifest


def snapshot_name(ms: int) -> str:
    """The name of a snapshot in a folder that collects them."""
    moment = datetime.fromtimestamp(ms / 1000, tz=UTC)
    return f"{_PREFIX}{moment.strftime('%Y-%m-%dT%H-%M-%S')}.{ms % 1000:03}Z"


def remove_old(folder: Path, *, keep: int) -> tuple[str, ...]:
    """Remove all but the newest snapshots of a folder; what is no whole snapshot of ours is left alone."""
    ours = [path for path in sorted(folder.glob(f"{_PREFIX}*")) if (path / MANIFEST).is_file()]
    old = ours[: max(0, len(ours) - keep)]
    for path in old:
        # without its manifest it is no snapshot any more, also if the removal is interrupted
        (path / MANIFEST).unlink()
        shutil.rmtree(path, ignore_errors=True)
    return tuple(str(path) for path in old)


def verified(folder: Path, world: World) -> tuple[str, ...]:
    """What is wrong with a snapshot; empty when every file is what the manifest says and the database is whole."""
    manifest = read_manifest(folder)
    try:
        found = list(_differences(folder, manifest))
        return tuple(found or _database_faults(folder / DATABASE, manifest, world))
    except (KeyError, TypeError, AttributeError):
        return (f"{MANIFEST} is damaged",)


def _differences(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    listed = [(folder / manifest["database"]["file"], manifest["database"])]
    listed += [(folder / "categories" / f"{row['name']}.json", row) for row in manifest["categories"]]
    listed += [(folder / "backups" / row["file"], row) for row in manifest["backups"]]
    for path, row in listed:
        try:
            if path.is_symlink() or _measured(path)["sha256"] != row["sha256"]:
                yield f"{path.name} is not what the manifest says"
        except OSError:
            yield f"{path.name} is missing or cannot be read"
    expected = {path for path, _ in listed}
    strangers = [path for path in folder.glob("categories/*") if path not in expected]
    yield from (f"{path.name} is not in the manifest" for path in strangers)


def _database_faults(database: Path, manifest: dict[str, Any], world: World) -> Iterator[str]:
    try:
        with translated(database):
            refuse_unfit(database)
            link = Link(database, "frozen", world, busy_timeout_ms=0)
            try:
                yield from faults(link)
                if json.loads(json.dumps(asdict(_counts(link)))) != manifest["counts"]:
                    yield "the database has other counts than the manifest"
                yield from _category_faults(link, manifest)
            finally:
                link.close()
    except KeepwellError as error:
        yield error.sentence


def _category_faults(link: Link, manifest: dict[str, Any]) -> Iterator[str]:
    listed = {row["name"] for row in manifest["categories"]}
    live = {row["name"] for row in link.rows("categories", after="", limit=_EVERYTHING)}
    yield from (f"category {name!a} has no file" for name in sorted(live - listed))
