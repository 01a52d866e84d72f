"""What one durable add of a lesson costs, in ratio to one bare SQLite commit of the same row.

Floor: one INSERT of the text and its evidence into one plain table, a transaction of its own, WAL, synchronous=FULL.
Budget: three times the floor.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from corpus import Corpus
from measuring import Budget, Figure, arguments, elapsed_ms, in_turns, print_machine, print_table, status
from stores import bare_table, commit_row, library_in, temporary_folder

import keepwell
from keepwell.operations.library import Library


def measure(library: Library, folder: Path, *, rounds: int) -> tuple[Figure, ...]:
    """Add different lessons in turns with the floor's rows."""
    lessons, rows = Corpus(1), Corpus(1)
    connection = bare_table(folder / "bare.db")

    def add() -> Mapping[str, float]:
        sample = lessons.sample()
        return {"add": elapsed_ms(lambda: keepwell.perform(library, "memory_add", **sample.arguments))}

    def commit() -> Mapping[str, float]:
        sample = rows.sample()
        return {"commit": elapsed_ms(lambda: commit_row(connection, sample.text, "\n".join(sample.evidence)))}

    readings = in_turns(rounds, (add, commit))
    connection.close()
    return (
        Figure("floor: bare commit", readings["commit"]),
        Figure("add a lesson", readings["add"], floor=readings["commit"], budget=Budget(3, "ratio")),
    )


def main() -> int:
    """Run the benchmark and give the exit status."""
    rounds = 50 if arguments(__doc__).parse_args().short else 5_000
    with temporary_folder() as folder:
        with library_in(folder) as library:
            print_machine()
            print_table(measure(library, folder, rounds=rounds))
        with library_in(folder) as library, library.store.reading() as reader:
            kept = reader.counts().lessons
    expected = rounds + 1  # the unmeasured round is kept as well
    return status([] if kept == expected else [f"{expected} lessons were added and {kept} are there"])


if __name__ == "__main__":
    sys.exit(main())
