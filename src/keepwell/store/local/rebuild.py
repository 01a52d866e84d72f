"""Making a database again: from its own log as far as it can be read, and from the files of categories.

A new database is filled beside the old one, checked, and moved into its place as a restore is: whatever interrupts it
can be finished or undone. The files of categories stay where they are.
"""

import itertools
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from keepwell.model import jsonform
from keepwell.model.category import checked_document
from keepwell.model.change import Change, ChangeKind, Draft, Payload
from keepwell.model.errors import Corrupt, KeepwellError
from keepwell.model.identity import uuid7
from keepwell.model.lesson import Author
from keepwell.model.scope import Scope
from keepwell.store.local import restore
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.engine import LocalStore
from keepwell.store.local.files import make_private_folders
from keepwell.store.local.guard import SIDECARS
from keepwell.store.local.keyfile import key_path
from keepwell.store.local.link import Link
from keepwell.store.local.rows import to_change, to_scope
from keepwell.store.local.writer import LocalWriter
from keepwell.store.port import Delivery, Rebuilt
from keepwell.store.world import World

_PAGE: Final = 500
_AUTHOR: Final = Author("person", "keepwell rebuild")
_BACKUP: Final = re.compile(
    r"(?P<name>.+)\.(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(\.(?P<version>\d+)(-\d+)?)?(?P<deleted>\.deleted)?\.json"
)
"""The name of a backup, ours or that of mcp-memory-rs, which has no version."""


@dataclass(slots=True)
class _Tally:
    changes: int = 0
    categories: int = 0
    versions: int = 0
    problems: list[str] = field(default_factory=list)


def rebuild(database: Path, *, device: str, world: World, dry_run: bool) -> Rebuilt:
    """Fill a new database, and unless it is only a try, put it in the old one's place."""
    base = database.parent
    restore.refuse_half_restored(base)
    moment = datetime.fromtimestamp(world.now_ms() / 1000, tz=UTC).strftime("%Y-%m-%dT%H-%M-%S")
    incoming, parked = f".rebuild-{moment}", f"rebuild-parked-{moment}"
    tally = _Tally()
    with restore.alone(database):
        try:
            make_private_folders(base / incoming)
            if key_path(database).exists():
                shutil.copyfile(key_path(database), base / incoming / key_path(database).name)
            copy = _copied(database, base / incoming / "old")
            _fill(database.parent, copy, base / incoming / database.name, device, world, tally)
            if not dry_run:
                _arrange(base, database.name, incoming, parked)
        except BaseException:
            shutil.rmtree(base / incoming, ignore_errors=True)
            raise
    if dry_run:
        shutil.rmtree(base / incoming, ignore_errors=True)
    else:
        restore.finish(database)
    where = None if dry_run else str(base / parked)
    return Rebuilt(tally.changes, tally.categories, tally.versions, where, tuple(tally.problems))


def _arrange(base: Path, name: str, incoming: str, parked: str) -> None:
    """Leave only the database in what moves in, and say so in the marker."""
    for folder in ("categories", "backups", "old"):
        shutil.rmtree(base / incoming / folder, ignore_errors=True)
    present = [item for item in (name, *(name + ending for ending in SIDECARS)) if (base / item).exists()]
    arriving = [name] + ([] if key_path(base / name).exists() else [f"{name}.key"])
    restore.mark(base, restore.Plan("a rebuild", incoming, parked, present, arriving))


def _copied(database: Path, folder: Path) -> Path | None:
    """A copy of the old database to read from: the original is locked, and what reads it must not change it."""
    if not database.exists():
        return None
    make_private_folders(folder)
    for ending in ("", "-wal", "-journal"):
        original = database.with_name(database.name + ending)
        if original.exists():
            shutil.copyfile(original, folder / original.name)
    return folder / database.name


def _fill(base: Path, old: Path | None, new: Path, device: str, world: World, tally: _Tally) -> None:
    def new_uid() -> str:
        return uuid7(world.now_ms(), world.random_bytes(10))

    store = LocalStore(new, device=device, world=world, new_uid=new_uid)
    try:
        if old:
            _replay(old, store, world, tally)
        _adopt_files(CategoryFiles(base), store, tally)
        store.settle()
        if found := store.check():
            raise Corrupt(f"the rebuilt database is not whole: {found[0]}")
    finally:
        store.close()


def _replay(old: Path, store: LocalStore, world: World, tally: _Tally) -> None:
    """Take every change of the old log that can be read, then the counts of deliveries and the receipts."""
    try:
        link = Link(old, "write", world, busy_timeout_ms=0)
    except apsw.Error as error:
        tally.problems.append(f"the old database cannot be opened ({error}); only files are left.")
        return
    try:
        scopes = {scope.uid: scope for scope in _scopes(link, tally)}
        for page in _pages(link, tally):
            with store.writing() as writer:
                for change in page:
                    _take(writer, change, scopes, tally)
        _copy_the_rest(link, store, tally)
    finally:
        with suppress(apsw.Error):
            link.close()


def _scopes(link: Link, tally: _Tally) -> list[Scope]:
    try:
        return [to_scope(row) for row in link.rows("scope_summaries")]
    except apsw.Error as error:
        tally.problems.append(f"the projects cannot be read ({error}).")
        return []


def _pages(link: Link, tally: _Tally) -> Iterator[list[Change]]:
    after, size = 0, _PAGE
    while True:
        try:
            page = [to_change(row) for row in link.rows("changes", after=after, limit=size)]
        except (apsw.Error, ValueError, KeyError, TypeError) as error:
            if size > 1:
                # what can be read before the damage is read one by one
                size = 1
                continue
            tally.problems.append(f"the log cannot be read after change {after} ({error}).")
            return
        if not page:
            return
        yield page
        after = page[-1].seq


def _take(writer: LocalWriter, change: Change, scopes: dict[str, Scope], tally: _Tally) -> None:
    scope = scopes.get(change.scope_uid) if change.scope_uid else None
    if change.scope_uid and scope is None:
        tally.problems.append(f"change {change.seq} belongs to a project that cannot be read.")
        return
    tally.changes += writer.take(change, scope)


def _copy_the_rest(link: Link, store: LocalStore, tally: _Tally) -> None:
    """Deliveries and receipts, which no log has."""
    try:
        deliveries = [Delivery(**row) for row in link.rows("all_retrievals")]
        receipts = link.rows("all_receipts")
    except apsw.Error as error:
        tally.problems.append(f"the counts of deliveries or the receipts cannot be read ({error}).")
        return
    with store.writing() as writer:
        writer.take_deliveries(deliveries)
        writer.take_receipts(receipts)


def _adopt_files(files: CategoryFiles, store: LocalStore, tally: _Tally) -> None:
    """Take in the categories that the log does not know, with what their backups say of their past."""
    pasts = _pasts(files)
    for name in sorted({*files.names(), *pasts}):
        with store.reading() as reader:
            if reader.heading(name):
                continue
        try:
            _adopt(files, store, name, pasts.get(name, []), tally)
        except KeepwellError as error:
            tally.problems.append(f"category {name!a}: {error.sentence}")


def _pasts(files: CategoryFiles) -> dict[str, list[Path]]:
    """Backups by category, oldest first."""
    found: dict[str, list[tuple[str, int, Path]]] = {}
    for path in files.backups.glob("*.json"):
        if parts := _BACKUP.fullmatch(path.name):
            found.setdefault(parts["name"], []).append((parts["time"], int(parts["version"] or 0), path))
    return {name: [path for _, _, path in sorted(dated)] for name, dated in found.items()}


def _adopt(files: CategoryFiles, store: LocalStore, name: str, past: list[Path], tally: _Tally) -> None:
    present = files.read(name)
    states = [path.read_bytes() for path in past] + ([present] if present is not None else [])
    with store.writing() as writer:
        texts = [checked_document(jsonform.parse(data.decode())) for data in states]
        # a backup that was made twice is one state
        for text in (text for text, _ in itertools.groupby(texts)):
            writer.append(_draft(ChangeKind.CATEGORY_ADOPTED, name, text))
        if present is None:
            last = texts[-1] if '"_kind": "log"' in texts[-1] else None
            writer.append(_draft(ChangeKind.CATEGORY_DELETED, name, last))
    tally.categories += 1
    tally.versions += len(texts)


def _draft(kind: ChangeKind, name: str, text: str | None) -> Draft:
    return Draft(kind, name, None, _AUTHOR, Payload(text=text, reason="found in the files"))
