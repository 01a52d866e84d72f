"""A process's share of writes, and the account that it keeps of what was acknowledged."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from corpus import Corpus
from stores import bare_table, commit_row, library_in

import keepwell
from keepwell.operations.library import Library

SHARED_LESSONS: Final = 10
"""The first lessons of the store, which every process reports on."""

BARE_PATIENCE_MS: Final = 60_000


@dataclass(slots=True)
class Account:
    """What one process was told about its writes: which were acknowledged, and how long it waited for each.

    `texts` holds its lessons by id, `ends` what became of those that are no longer active (`archived` or the id of the
    successor), `reports` the number of reports on each shared lesson. Times of `began` and `ended` are the machine's.
    """

    waits_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    ends: dict[int, int | str] = field(default_factory=dict)
    reports: Counter[int] = field(default_factory=Counter)
    began: float = 0.0
    ended: float = 0.0


class Writer:
    """Makes mixed writes through the library and keeps the account of them."""

    def __init__(self, library: Library, seed: int) -> None:
        self.account: Final = Account()
        self._library: Final = library
        self._corpus: Final = Corpus(seed)
        self._chance: Final = random.Random(seed)
        self._active: Final[list[int]] = []

    def write(self) -> None:
        """One write: two in five add, the others report, supersede or archive where there is something to."""
        kind = self._chance.choices((self._add, self._report, self._supersede, self._archive), (4, 3, 2, 1))[0]
        (kind if self._active else self._add)()

    def _add(self) -> None:
        sample = self._corpus.sample()
        if added := self._asked("memory_add", **sample.arguments):
            self._keep(added.id, sample.text)

    def _report(self) -> None:
        lesson_id = self._chance.randint(1, SHARED_LESSONS)
        if self._asked("memory_feedback", memory_id=lesson_id, verdict="useful"):
            self.account.reports[lesson_id] += 1

    def _supersede(self) -> None:
        sample, old = self._corpus.sample(), self._chosen()
        if written := self._asked("memory_supersede", id=old, **sample.arguments):
            self._active.remove(old)
            self.account.ends[old] = written.id
            self._keep(written.id, sample.text)

    def _archive(self) -> None:
        old = self._chosen()
        if self._asked("memory_archive", id=old):
            self._active.remove(old)
            self.account.ends[old] = "archived"

    def _chosen(self) -> int:
        return self._chance.choice(self._active)

    def _keep(self, lesson_id: int, text: str) -> None:
        self._active.append(lesson_id)
        self.account.texts[lesson_id] = text

    def _asked(self, operation: str, **values: Any) -> Any:
        start = time.perf_counter_ns()
        try:
            return keepwell.perform(self._library, operation, **values)
        except keepwell.KeepwellError as error:
            self.account.errors.append(f"{operation}: {error.line}")
            return None
        finally:
            self.account.waits_ms.append((time.perf_counter_ns() - start) / 1e6)


def write_mixed(folder: Path, seed: int, count: int, ready: Callable[[], object]) -> Account:
    """One process's share of the writes to the store."""
    with library_in(folder, client=f"writer-{seed}") as library:
        library.caller.project()
        writer = Writer(library, seed)
        ready()
        writer.account.began = time.time()
        for _ in range(count):
            writer.write()
        writer.account.ended = time.time()
    return writer.account


def write_bare(folder: Path, seed: int, count: int, ready: Callable[[], object]) -> Account:
    """As many single rows to the bare database."""
    account, corpus = Account(), Corpus(seed)
    connection = bare_table(folder / "bare.db", busy_timeout_ms=BARE_PATIENCE_MS)
    ready()
    account.began = time.time()
    for _ in range(count):
        sample = corpus.sample()
        start = time.perf_counter_ns()
        commit_row(connection, sample.text, "\n".join(sample.evidence))
        account.waits_ms.append((time.perf_counter_ns() - start) / 1e6)
    account.ended = time.time()
    connection.close()
    return account


Share = Callable[[Path, int, int, Callable[[], object]], Account]
"""A process's share of writes: folder, seed, count, and what to call when it is ready to begin."""
