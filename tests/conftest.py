"""What tests share: a clock that tests move, engines to choose from, libraries over them."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from keepwell.model.lesson import Author
from keepwell.model.scope import Project
from keepwell.operations.library import Caller, Library, Permissions
from keepwell.store.local.engine import LocalStore, Options
from keepwell.store.memory import MemoryStore
from keepwell.store.port import Store
from keepwell.store.world import World
from keepwell.wiring import real_world

PROJECT_A = Project("/projects/a", "a", 11)
PROJECT_B = Project("/projects/b", "b", 22)
ALL = Permissions(write=True, global_write=True, global_read=True)


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    ms: int = 1_800_000_000_000

    def now(self) -> int:
        return self.ms


@dataclass
class Uids:
    """Uids in a fixed order, so that two engines can be compared."""

    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __call__(self) -> str:
        return f"00000000-0000-7000-8000-{next(self.numbers):012d}"


def world_of(clock: Clock) -> World:
    """The real world with another clock."""
    real = real_world()
    return World(clock.now, real.elapsed_ms, real.pause_ms, real.random_bytes)


class OpenLocal(Protocol):
    """Opens a local store in the test's folder."""

    def __call__(self, name: str = "memory.db", *, options: Options | None = None) -> LocalStore: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_local(tmp_path: Path, clock: Clock) -> Iterator[OpenLocal]:
    opened: list[LocalStore] = []

    def open_one(name: str = "memory.db", *, options: Options | None = None) -> LocalStore:
        store = LocalStore(
            tmp_path / name, device="laptop", world=world_of(clock), new_uid=Uids(), options=options or Options()
        )
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, open_local: OpenLocal, clock: Clock) -> Store:
    """Each engine in turn."""
    if request.param == "memory":
        return MemoryStore(device="laptop", world=world_of(clock), new_uid=Uids())
    return open_local()


MakeLibrary = Callable[..., Library]


@pytest.fixture
def library(store: Store) -> MakeLibrary:
    """Makes a library for a project and permissions over the engine of this test."""

    def make(
        project: Project | Exception = PROJECT_A,
        permissions: Permissions = ALL,
        *,
        counts_retrievals: bool = True,
        fits: Callable[[object], bool] = lambda _reply: True,
        folder_exists: Callable[[str], bool] = lambda _path: True,
    ) -> Library:
        def find() -> Project:
            if isinstance(project, Exception):
                raise project
            return project

        caller = Caller(permissions, Author("assistant", "pi", "s1", "m1"), find, fits, counts_retrievals)
        return Library(store, caller, _LESSON_UIDS, folder_exists, "test")

    return make


_LESSON_UIDS = Uids(itertools.count(1_000_000))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--write-snapshots` renews the committed snapshots of the tools."""
    parser.addoption("--write-snapshots", action="store_true", help="renew the committed snapshots of the tools")


FAULTS = "faults injected"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many faults the tests of a failing disk have injected."""
    passed = terminalreporter.stats.get("passed", [])
    injected = sum(value for report in passed for name, value in report.user_properties if name == FAULTS)
    if injected:
        terminalreporter.write_line(f"{injected:,} faults injected into the disk")
