"""The local engine: `store.port.Store` on one SQLite file."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import apsw

from keepwell.model.census import Counts
from keepwell.model.errors import Busy, KeepwellError, NotFound
from keepwell.store.local.backup import write_backup
from keepwell.store.local.category_check import findings, free_bytes, too_open
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_reader import row_of
from keepwell.store.local.complaints import BUSY_HINT, denied, translated
from keepwell.store.local.create import ensure_database
from keepwell.store.local.files import PRIVATE_FILE, PRIVATE_FOLDER
from keepwell.store.local.guard import SCHEMA_VERSION, refuse_other, refuse_unfit
from keepwell.store.local.inspect import faults
from keepwell.store.local.keyfile import key_path, load_key
from keepwell.store.local.link import Link, Mode, Row, quiet_mode
from keepwell.store.local.mounts import SHARED, file_system_of
from keepwell.store.local.quiet import WhenQuiet
from keepwell.store.local.reader import LocalReader
from keepwell.store.local.restore import refuse_half_restored
from keepwell.store.local.snapshot import Source, remove_old, snapshot_name, write_snapshot
from keepwell.store.local.upgrade import upgrade
from keepwell.store.local.writer import LocalWriter
from keepwell.store.port import Capabilities, Finding, Pruned, Snapshot, StoreStatus
from keepwell.store.world import World

_log: Final = logging.getLogger(__name__)

_SWITCH_PATIENCE_MS: Final = 1_000
"""How long opening a store waits for a change of its journal mode, which needs the store for itself."""

_QUIET_SECONDS: Final = 2.0
"""How long after the last append the files of logs are written again."""

_LAST_PATIENCE_MS: Final = 200
"""How long the settling of logs waits for the write lock; somebody else settles them if not we."""

_DAY_MS: Final = 86_400_000

_SYNCHRONOUS: Final = {1: "normal", 2: "full"}


@dataclass(frozen=True, slots=True)
class Options:
    """How the database is kept. Times in milliseconds.

    `shared_mount` overrides the detection of a network or shared file system: `auto`, `yes` or `no`.
    """

    journal_mode: Literal["wal", "delete"] = "wal"
    synchronous: Literal["full", "normal"] = "full"
    busy_timeout_ms: int = 200
    lock_deadline_ms: int = 10_000
    shared_mount: Literal["auto", "yes", "no"] = "auto"
    max_versions: int = 100


class LocalStore:
    """A store in one file; any number of processes and threads may have it open."""

    capabilities: Final = Capabilities(name="local", durable=True, multi_process=True, backup=True)

    def __init__(
        self,
        database: Path,
        *,
        device: str,
        world: World,
        new_uid: Callable[[], str],
        options: Options | None = None,
    ) -> None:
        """Open the store, or make it. Raises what `store.port` names; an unfit file is not touched."""
        self._database: Final = database
        self._device: Final = device
        self._world: Final = world
        self._new_uid: Final = new_uid
        self._options: Final = options or Options()
        self._guard: Final = threading.Lock()
        self._idle: list[Link] = []
        self._in_use: set[Link] = set()
        self._stopping = False
        self._unsettled = False
        self._has_written = False
        self._when_quiet: Final = WhenQuiet(self._try_to_settle, seconds=_QUIET_SECONDS)
        self._files: Final = CategoryFiles(database.parent)
        self.file_system: Final = file_system_of(_existing(database.parent))
        self._key: Final = self._prepare()
        # opening once now finds a damaged or foreign store before the first call does
        with self._connected() as link:
            self._warn(link)

    @property
    def journal_mode(self) -> Literal["wal", "delete"]:
        """The journal mode that suits the settings and the file system."""
        return "delete" if self._shared else self._options.journal_mode

    @property
    def _shared(self) -> bool:
        return {"yes": True, "no": False}.get(self._options.shared_mount, self.file_system in SHARED)

    def _warn(self, link: Link) -> None:
        if link.mode != "write":
            _log.warning("the store can only be read: no permission to write to %s", self._database.parent)
        if self.journal_mode != self._options.journal_mode:
            _log.warning(
                "%s lies on a shared file system (%s): using the rollback journal", self._database, self.file_system
            )

    def _prepare(self) -> bytes:
        with translated(self._database):
            refuse_half_restored(self._database.parent)
            try:
                ensure_database(self._database, self._world, journal_mode=self.journal_mode)
                refuse_unfit(self._database)
                if self._mode_without_key() == "write":
                    upgrade(self._database, self._world)
                return load_key(self._database, random_bytes=self._world.random_bytes)
            except OSError as error:
                if self._database.exists() and not key_path(self._database).exists():
                    # a read-only store can still be read; what it lacks is needed for writing only
                    return b""
                raise denied(self._database, error) from None

    @contextmanager
    def reading(self) -> Iterator[LocalReader]:  # noqa: D102 - the port's docstring holds
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            link.run_patiently("begin_read")
            try:
                link.run_patiently("touch")
                yield self._reader(link)
            finally:
                link.roll_back()

    @contextmanager
    def writing(self, *, patience_ms: int | None = None) -> Iterator[LocalWriter]:  # noqa: D102
        budget = self._options.lock_deadline_ms
        with self._connected() as link, translated(self._database):
            if link.mode != "write":
                raise denied(self._database)
            link.allow(budget if patience_ms is None else min(budget, patience_ms))
            link.run_patiently("begin_write")
            try:
                writer = self._writer(link)
                try:
                    yield writer
                except BaseException:
                    writer.abandon()
                    raise
                if writer.taken_back:
                    writer.abandon()
                    return
                if not self._has_written:
                    # what a killed process left behind is this one's to settle when it ends
                    self._has_written, self._unsettled = True, bool(writer.unsettled())
                # whether a commit that fails has taken place is for the next lock to see: what is staged stays
                link.run_patiently("commit")
            finally:
                link.roll_back()
            # outside the lock: others may write, and do this for us if they come first
            writer.finish()
            if writer.leaves_logs_unsettled:
                self._unsettled = True
                self._when_quiet.stir()

    def _reader(self, link: Link) -> LocalReader:
        return LocalReader(link, self._key, self._files, self._newest_row)

    def _writer(self, link: Link) -> LocalWriter:
        return LocalWriter(
            link,
            self._key,
            self._files,
            self._newest_row,
            device=self._device,
            now_ms=self._world.now_ms,
            new_uid=self._new_uid,
            transaction=self._world.random_bytes(8).hex(),
            max_versions=self._options.max_versions,
        )

    def _newest_row(self, name: str) -> Row | None:
        """What is known of a category by now; asked on a connection of its own, whose instant is now."""
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            return row_of(link, name)

    def settle(self, *, patience_ms: int | None = None) -> None:  # noqa: D102
        self._unsettled = False
        with self.reading() as reader:
            behind = reader.unsettled()
        for name in behind:
            with self.writing(patience_ms=patience_ms) as writer:
                if name in writer.unsettled():
                    writer.settle(name)

    def _try_to_settle(self) -> None:
        """Best effort: what stays behind is in the database, and the next keepwell settles it."""
        try:
            self.settle(patience_ms=_LAST_PATIENCE_MS)
        except (KeepwellError, OSError) as error:
            _log.info("the files of logs follow later: %s", error)

    def status(self) -> StoreStatus:  # noqa: D102
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            return StoreStatus(
                engine=self.capabilities.name,
                database=str(self._database),
                writable=link.mode == "write",
                schema_version=SCHEMA_VERSION,
                journal_mode=link.value("journal_mode"),
                synchronous=_SYNCHRONOUS.get(link.value("synchronous")),
                file_system=self.file_system,
                database_bytes=self._database.stat().st_size,
                wal_bytes=_size(self._database.with_name(self._database.name + "-wal")),
                categories_dir=str(self._files.folder),
                backups_dir=str(self._files.backups),
                free_bytes=free_bytes(self._database.parent),
                counts=self._reader(link).counts(),
            )

    def check(self) -> tuple[str, ...]:  # noqa: D102
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            return faults(link)

    def prune_backups(self, *, older_than_days: int, dry_run: bool) -> Pruned:  # noqa: D102
        with translated(self._database):
            old = self._files.old_backups(before_ms=self._world.now_ms() - older_than_days * _DAY_MS)
            # another process may be removing them, too
            sizes = [size for path in old if (size := _size(path)) is not None]
            pruned = Pruned(len(sizes), sum(sizes))
            if not dry_run:
                self._files.remove_backups(old)
        return pruned

    def findings(self) -> tuple[Finding, ...]:  # noqa: D102
        with self.reading() as reader:
            return tuple(findings(reader, self._files, self._database))

    def mend(self) -> tuple[str, ...]:  # noqa: D102
        done = [f"{path} is private now." for path in self._close_off()]
        with self.writing() as writer:
            writer.settle_staged()
            rebuilt = writer.mend_index()
        done += ["The full-text index was built anew."] if rebuilt else []
        for name in self._without_file():
            # who deletes it meanwhile leaves nothing to do
            with suppress(NotFound):
                with self.writing() as writer:
                    writer.rewrite_file(name)
                done.append(f"The file of {name!a} was written again.")
        return tuple(done)

    def _close_off(self) -> list[str]:
        open_to_others = [Path(finding.subject) for finding in too_open(self._database, self._files)]
        with translated(self._database):
            for path in open_to_others:
                path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)
        return [str(path) for path in open_to_others]

    def _without_file(self) -> list[str]:
        wanted = {"missing_file", "unsettled"}
        return [finding.subject for finding in self.findings() if finding.code in wanted]

    def backup(self, target: Path) -> Counts:  # noqa: D102
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            return write_backup(link, target, self._world)

    def snapshot(self, folder: Path, *, with_backups: bool, keep: int | None, facts: dict[str, Any]) -> Snapshot:  # noqa: D102
        self.settle()
        now = self._world.now_ms()
        target = folder if keep is None else folder / snapshot_name(now)
        facts = {**facts, "created_at": now, "device": self._device, "schema_version": SCHEMA_VERSION}
        with self._connected() as link, self.writing() as writer:
            writer.settle_staged()
            link.allow(self._options.lock_deadline_ms)
            source = Source(link, writer, self._files, self._database, with_backups=with_backups)
            manifest = write_snapshot(source, target, self._world, facts)
        removed = () if keep is None else remove_old(folder, keep=keep)
        return Snapshot(str(target), manifest, removed)

    def scrub(self) -> bool:  # noqa: D102
        with self._connected() as link, translated(self._database):
            link.allow(self._options.lock_deadline_ms)
            link.rows("secure_delete")
            link.rows("merge_lesson_index")
            link.rows("merge_document_index")
            link.run_patiently("rewrite_file")
            [state] = link.rows("checkpoint_truncate")
            return not state["busy"]

    def interrupt(self) -> None:  # noqa: D102
        self._stopping = True
        with self._guard:
            for link in self._in_use:
                link.interrupt()

    def close(self) -> None:  # noqa: D102
        self._when_quiet.stop()
        if self._unsettled:
            # also after an interruption: whoever asked for the end waits for none but this, and not for long
            self._stopping = False
            self._try_to_settle()
        with self._guard:
            idle, self._idle = self._idle, []
        for link in idle:
            with suppress(apsw.Error):
                link.close()

    @contextmanager
    def _connected(self) -> Iterator[Link]:
        link = self._take()
        try:
            yield link
        finally:
            self._give_back(link)

    def _take(self) -> Link:
        if self._stopping:
            raise Busy("keepwell is stopping.", hint=BUSY_HINT)
        with self._guard:
            link = self._idle.pop() if self._idle else None
        if link is None:
            link = self._opened()
        with self._guard:
            self._in_use.add(link)
        return link

    def _give_back(self, link: Link) -> None:
        with self._guard:
            self._in_use.discard(link)
            # a connection to a read-only store is not kept: the folder may become writable, or be written by others
            if link.mode == "write" and not self._stopping:
                self._idle.append(link)
                return
        link.close()

    def _opened(self) -> Link:
        with translated(self._database):
            refuse_half_restored(self._database.parent)
            try:
                refuse_unfit(self._database)
            except OSError as error:
                raise denied(self._database, error) from None
            link = Link(self._database, self._mode(), self._world, busy_timeout_ms=self._options.busy_timeout_ms)
            try:
                self._configure(link)
            except BaseException:
                link.close()
                raise
            return link

    def _mode_without_key(self) -> Mode:
        folder = self._database.parent
        if os.access(self._database, os.W_OK) and os.access(folder, os.W_OK):
            return "write"
        return quiet_mode(self._database)

    def _mode(self) -> Mode:
        # without the key of the digests nothing can be written
        return self._mode_without_key() if self._key else quiet_mode(self._database)

    def _configure(self, link: Link) -> None:
        link.allow(self._options.lock_deadline_ms)
        # another process may just be recovering the write-ahead log of one that was killed
        link.run_patiently("touch")
        refuse_other(link.value("application_id"), link.value("user_version"), self._database)
        link.rows("foreign_keys")
        link.rows("distrust_schema")
        if link.mode != "write":
            link.rows("read_only")
            return
        link.rows(f"synchronous_{self._options.synchronous}")
        if link.value("journal_mode") != self.journal_mode:
            self._switch_journal(link)
        link.rows("wal_autocheckpoint")
        link.rows("wal_size_limit")

    def _switch_journal(self, link: Link) -> None:
        link.allow(min(_SWITCH_PATIENCE_MS, self._options.lock_deadline_ms))
        try:
            link.run_patiently(f"journal_{self.journal_mode}")
        except Busy:
            # others have the store open in the old mode, which is sound unless the file system is shared
            if self._shared:
                raise
            _log.warning("the journal mode stays as it is while others have the store open")


def _existing(folder: Path) -> Path:
    return next((path for path in (folder, *folder.parents) if path.exists()), folder)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
