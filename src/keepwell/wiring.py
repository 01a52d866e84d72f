"""From settings to a library: the only module that names concrete engines and reads clock and randomness."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keepwell import workspace
from keepwell.config import Resolved, Settings
from keepwell.model.access import AccessList
from keepwell.model.errors import Invalid
from keepwell.model.identity import uuid7
from keepwell.model.lesson import Author
from keepwell.model.scope import Project
from keepwell.operations.library import Caller, Library, Permissions
from keepwell.store.local.engine import LocalStore, Options
from keepwell.store.local.foreign import read_foreign
from keepwell.store.local.vault import LocalVault
from keepwell.store.port import Vault
from keepwell.store.world import World
from keepwell.version import VERSION


def real_world() -> World:
    """The machine's clocks and randomness."""
    return World(
        now_ms=lambda: time.time_ns() // 1_000_000,
        elapsed_ms=lambda: time.monotonic_ns() // 1_000_000,
        pause_ms=lambda ms: time.sleep(ms / 1000),
        random_bytes=os.urandom,
    )


def uid_maker(world: World) -> Callable[[], str]:
    """A maker of fresh UUIDs of version 7."""
    return lambda: uuid7(world.now_ms(), world.random_bytes(10))


@contextmanager
def open_library(
    resolved: Resolved,
    *,
    person: bool,
    fits: Callable[[object], bool] = lambda _reply: True,
    tell: Callable[[str], None] = lambda _line: None,
) -> Iterator[Library]:
    """The store of these settings with its caller, closed at the end of the block.

    A person at the terminal may write what they type, and browsing is not counted as a delivery unless `--client` says
    that an assistant is asking. An assistant gets the permissions of its launch, and `fits` bounds its replies.
    """
    settings = resolved.settings
    world = real_world()
    new_uid = uid_maker(world)
    store = LocalStore(
        settings.database, device=settings.device, world=world, new_uid=new_uid, options=_options(settings)
    )
    try:
        yield Library(
            store,
            Caller(
                permissions=_permissions(settings, person=person),
                author=Author("person" if person else "assistant", settings.client, settings.session, settings.model),
                project=project_finder(settings, dict(os.environ)),
                fits=fits,
                counts_retrievals=not person or "client" in resolved.chosen,
            ),
            new_uid,
            folder_exists=lambda path: Path(path).is_dir(),
            version=VERSION,
            access=_access(settings),
            keep_versions=settings.max_versions,
            keep_backup_days=settings.backup_retention_days,
            tell=tell,
            wait=time.sleep,
            read_foreign=read_foreign,
        )
    finally:
        store.close()


def open_vault(resolved: Resolved) -> Vault:
    """The store of these settings, not opened: for what is done to it as a whole."""
    settings = resolved.settings
    return LocalVault(settings.database, device=settings.device, world=real_world())


def _options(settings: Settings) -> Options:
    return Options(
        journal_mode=settings.journal_mode,
        synchronous=settings.synchronous,
        busy_timeout_ms=settings.sqlite_busy_timeout_ms,
        lock_deadline_ms=settings.lock_deadline_ms,
        shared_mount=settings.shared_mount,
        max_versions=settings.max_versions,
    )


def _access(settings: Settings) -> AccessList:
    listed = (settings.admin_devices, settings.device_categories)
    admins, devices = (names or () for names in listed)
    return AccessList(settings.device, admins, devices, configured=listed != (None, None))


def _permissions(settings: Settings, *, person: bool) -> Permissions:
    global_read = not settings.no_global_read
    if person:
        return Permissions(write=True, global_write=global_read, global_read=global_read)
    return Permissions(settings.allow_write, settings.allow_global_write, global_read)


def project_finder(settings: Settings, environment: dict[str, str]) -> Callable[[], Project]:
    """A function that gives the launch's project, found once; a failure is told and tried again at the next call."""
    found: list[Project] = []
    guard = threading.Lock()

    def project() -> Project:
        with guard:
            if not found:
                found.append(_resolve(settings, environment))
            return found[0]

    return project


def _resolve(settings: Settings, environment: dict[str, str]) -> Project:
    if settings.workspace is None:
        raise Invalid("the working directory is gone.", hint="Name the project's folder with --workspace.")
    return workspace.resolve(settings.workspace, environment=environment, explicit=settings.workspace_is_explicit)
