"""Many processes that write to one store at once: whether all that was acknowledged is there, and how long they wait.

Each process makes its share of mixed writes: it adds lessons, reports on shared ones, supersedes and archives its own.
Afterwards the store is opened afresh and every acknowledged write is looked for.

Floors: one process that makes the same number of writes as each of the many, alone; and as many processes that commit
single rows to a bare SQLite database (WAL, synchronous=FULL) as often.
Budget: 20 processes x 1,000 writes, none lost, no error shown.
"""

import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

from corpus import Corpus
from measuring import arguments, print_machine, quantile, status
from stores import library_in, temporary_folder
from writers import SHARED_LESSONS, Account, Share, write_bare, write_mixed

import keepwell
from keepwell.store.port import Reader

START_PATIENCE_SECONDS: Final = 120


_met: list[Barrier] = []
"""In a process of the pool: where it waits for the others, so that all begin at once."""


def _meet_at(barrier: Barrier) -> None:
    _met.append(barrier)


def _work(share: Share, folder: Path, seed: int, count: int) -> Account:
    return share(folder, seed, count, lambda: _met[0].wait(START_PATIENCE_SECONDS))


def run(share: Share, folder: Path, *, processes: int, count: int, first_seed: int) -> list[Account]:
    """Let so many processes do their shares at the same time."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, fresh, _meet_at, (fresh.Barrier(processes),)) as pool:
        work = [pool.submit(_work, share, folder, first_seed + number, count) for number in range(processes)]
        return [one.result() for one in work]


def lost(folder: Path, accounts: list[Account]) -> list[str]:
    """What a fresh look at the store does not find as it was acknowledged."""
    with library_in(folder) as library, library.store.reading() as reader:
        lessons = [fault for account in accounts for fault in _lost_lessons(reader, account)]
        return [*lessons, *_lost_reports(reader, accounts), *library.store.check()]


def _lost_lessons(reader: Reader, account: Account) -> Iterator[str]:
    for lesson_id, text in account.texts.items():
        end = account.ends.get(lesson_id)
        expected = (text, "archived" if end else "active", (end,) if isinstance(end, int) else ())
        lesson = reader.lesson(lesson_id)
        if lesson is None or (lesson.text, lesson.status, lesson.superseded_by) != expected:
            yield f"lesson {lesson_id} is not as it was acknowledged: {lesson}"


def _lost_reports(reader: Reader, accounts: list[Account]) -> Iterator[str]:
    for lesson_id, told in sum((account.reports for account in accounts), Counter[int]()).items():
        kept = reader.statistics(lesson_id).useful_count
        if kept != told:
            yield f"{told} reports on lesson {lesson_id} were acknowledged, {kept} are there"


def print_account(what: str, accounts: list[Account]) -> float:
    """Print one line about a run and give its writes per second."""
    waits = [wait for account in accounts for wait in account.waits_ms]
    seconds = max(account.ended for account in accounts) - min(account.began for account in accounts)
    rate = len(waits) / seconds
    median, p99, worst = (quantile(waits, share) for share in (0.5, 0.99, 1.0))
    told = f"{len(waits):>7,} writes  {rate:>7,.0f} /s"
    print(f"{what:<34}{told}  wait: median {median:,.1f} ms, p99 {p99:,.0f} ms, worst {worst:,.0f} ms", flush=True)
    return rate


def measure(folder: Path, *, processes: int, count: int) -> list[str]:
    """Run the floors and the many writers, print what they did, and give the faults."""
    with library_in(folder) as library:
        corpus = Corpus(0)
        for _ in range(SHARED_LESSONS):
            keepwell.perform(library, "memory_add", **corpus.sample().arguments)
    alone = run(write_mixed, folder, processes=1, count=count, first_seed=1_000)
    many = run(write_mixed, folder, processes=processes, count=count, first_seed=1)
    bare = run(write_bare, folder, processes=processes, count=count, first_seed=1)
    single = print_account("floor: one process alone", alone)
    raw = print_account(f"floor: {processes} processes, bare SQLite", bare)
    rate = print_account(f"{processes} processes, mixed writes", many)
    print(f"throughput: {rate / single:.2f} of one process alone, {rate / raw:.2f} of bare SQLite")
    errors = [error for account in (*alone, *many) for error in account.errors]
    faults = lost(folder, [*alone, *many])
    print(f"lost acknowledged writes: {len(faults)} (budget 0); errors shown: {len(errors)} (budget 0)")
    return [*errors, *faults]


def main() -> int:
    """Run the benchmark and give the exit status."""
    short = arguments(__doc__).parse_args().short
    with temporary_folder() as folder:
        print_machine()
        return status(measure(folder, processes=4 if short else 20, count=50 if short else 1_000))


if __name__ == "__main__":
    sys.exit(main())
