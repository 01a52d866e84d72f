"""What a write of a 10 KB document and an append to a log cost among many others, in ratio to their bare syncs.

Floor of a write: what the protocol makes durable, and nothing else: a file of 10 KB, the three folders that change, and
one SQLite commit. Floor of an append: one bare SQLite commit. Budget of a write: three times its floor.
"""

import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus import Corpus
from measuring import Budget, Figure, arguments, elapsed_ms, in_turns, print_machine, print_table, status
from stores import bare_table, commit_row, library_in, temporary_folder

import keepwell
from keepwell.operations.library import Library

KEYS = 60
"""How many top-level keys of a text and a number make 10 KB."""

ENTRIES_KEPT = 100_000


def document(corpus: Corpus, keys: int = KEYS) -> dict[str, Any]:
    """A document of that many keys."""
    return {f"key {number}": {"text": corpus.sample().text[:130], "number": number} for number in range(keys)}


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def bare_write(folder: Path, data: bytes) -> None:
    """A file and three folders made durable."""
    with (folder / "bare.json").open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    for _ in range(3):
        sync_folder(folder)


def measure_writes(library: Library, folder: Path, *, categories: int, rounds: int) -> tuple[Figure, ...]:
    """Replace and merge documents of 10 KB among `categories` small ones, in turns with the floor."""
    corpus, choice = Corpus(1), random.Random(1)
    for number in range(categories):
        data = {"text": corpus.sample().text}
        keepwell.perform(library, "memory_write", category=f"category {number}", data=data)
    connection = bare_table(folder / "bare.db")

    def write() -> Mapping[str, float]:
        name, data = f"category {choice.randrange(categories)}", document(corpus)
        return {"write": elapsed_ms(lambda: keepwell.perform(library, "memory_write", category=name, data=data))}

    def merge() -> Mapping[str, float]:
        data = {f"key {choice.randrange(KEYS)}": corpus.sample().text}
        keywords: dict[str, Any] = {"category": "merged", "data": data, "merge": True}
        return {"merge": elapsed_ms(lambda: keepwell.perform(library, "memory_write", **keywords))}

    def floor() -> Mapping[str, float]:
        def syncs() -> None:
            bare_write(folder, b"x" * 10_000)
            commit_row(connection, "x" * 10_000, "")

        return {"floor": elapsed_ms(syncs)}

    keepwell.perform(library, "memory_write", category="merged", data=document(corpus))
    readings = in_turns(rounds, (write, merge, floor))
    connection.close()
    budget = Budget(3, "ratio")
    return (
        Figure("floor: file, folders, commit", readings["floor"]),
        Figure(f"replace 10 KB among {categories:,}", readings["write"], floor=readings["floor"], budget=budget),
        Figure("merge one key into 10 KB", readings["merge"], floor=readings["floor"], budget=budget),
    )


def measure_appends(library: Library, folder: Path, *, entries: int) -> tuple[Figure, ...]:
    """Append to one log, in turns with the floor; the first and the last fifth show whether its length matters."""
    corpus = Corpus(2)
    connection = bare_table(folder / "bare appends.db")

    def append() -> Mapping[str, float]:
        data = {"did": corpus.sample().text}
        keywords: dict[str, Any] = {"category": "log", "data": data, "max_entries": ENTRIES_KEPT}
        return {"append": elapsed_ms(lambda: keepwell.perform(library, "memory_append", **keywords))}

    def commit() -> Mapping[str, float]:
        return {"commit": elapsed_ms(lambda: commit_row(connection, corpus.sample().text, ""))}

    readings = in_turns(entries, (append, commit))
    connection.close()
    fifth = entries // 5
    appends, commits = readings["append"], readings["commit"]
    return (
        Figure("floor: bare commit", commits),
        Figure(f"append, the first {fifth:,}", appends[:fifth], floor=commits[:fifth]),
        Figure(f"append, the last {fifth:,}", appends[-fifth:], floor=commits[-fifth:]),
        Figure("append, all in one", [sum(appends) / len(appends)], floor=[sum(commits) / len(commits)]),
    )


def main() -> int:
    """Run the benchmark and give the exit status."""
    short = arguments(__doc__).parse_args().short
    categories, rounds, entries = (50, 10, 100) if short else (10_000, 500, 100_000)
    with temporary_folder() as folder:
        with library_in(folder) as library:
            print_machine()
            figures = measure_writes(library, folder, categories=categories, rounds=rounds)
            print_table([*figures, *measure_appends(library, folder, entries=entries)])
        with library_in(folder) as library:
            kept = len(keepwell.perform(library, "memory_read", category="log").data["entries"])
            listed = keepwell.perform(library, "memory_list", limit=1).total
    expected = min(entries + 1, ENTRIES_KEPT)  # the unmeasured round is kept as well
    faults = [] if kept == expected else [f"{expected} entries were appended and {kept} are there"]
    faults += [] if listed == categories + 2 else [f"{categories + 2} categories were written and {listed} are there"]
    return status(faults)


if __name__ == "__main__":
    sys.exit(main())
