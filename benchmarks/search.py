"""How long a keyword search takes in stores of 1,000, 10,000 and 100,000 lessons, or a million with `--million`.

One store grows from size to size; half of its lessons belong to the project that asks, a quarter to everybody and a
quarter to another project. Questions run from three bare words to a whole request of thirty. They are asked as an
assistant, whose deliveries are counted by a durable write, and as a person, whose are not.

Floor: the bare FTS5 query for any of the same words, `ORDER BY bm25 LIMIT 5`, on the same file, with no scopes.
Budget: 95 of 100 searches in 20 ms at 100,000 lessons, in 150 ms at 1,000,000.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import apsw
from corpus import Corpus, Sample
from measuring import Budget, Figure, Readings, arguments, elapsed_ms, in_turns, print_machine, print_table, status
from stores import database_in, library_in, temporary_folder

import keepwell
from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.lesson import Author, Evidence
from keepwell.model.scope import GLOBAL, Project, ScopeRef
from keepwell.operations.library import Library

SHORT: Final = {200: 20, 1_000: 20}
USUAL: Final = {1_000: 300, 10_000: 300, 100_000: 300}
MILLION: Final = {1_000_000: 60}
"""How many questions to ask at each size."""

BUDGETS: Final = {100_000: Budget(20, "p95"), 1_000_000: Budget(150, "p95")}
BATCH: Final = 10_000
CHECKED_EVERY: Final = 97
LIMIT: Final = 5
ANOTHER: Final = ScopeRef(Project("/elsewhere/another", "another"))

BARE_QUERY: Final = """
SELECT memory_id FROM memory_search_index WHERE memory_search_index MATCH ?
ORDER BY bm25(memory_search_index, 0.0, 4.0, 1.0) LIMIT ?
"""


def fill(folder: Path, samples: Iterator[Sample], count: int) -> list[Sample]:
    """Save `count` lessons with few transactions; gives some of the project's own.

    Through a connection of its own: one that has written so much is about a tenth slower to search than a fresh one.
    """
    with library_in(folder) as library:
        return _filled(library, samples, count)


def _filled(library: Library, samples: Iterator[Sample], count: int) -> list[Sample]:
    project = ScopeRef(library.caller.project())
    scopes = (project, GLOBAL, project, ANOTHER)
    known = []
    for start in range(0, count, BATCH):
        with library.store.writing() as writer:
            for number, sample in enumerate(islice(samples, min(BATCH, count - start)), start):
                scope = scopes[number % len(scopes)]
                evidence = tuple(map(Evidence, sample.evidence))
                payload = Payload(sample.text, evidence)
                writer.append(
                    Draft(ChangeKind.LESSON_ADDED, library.new_uid(), scope, Author("person", "benchmark"), payload)
                )
                if scope is project and number % CHECKED_EVERY == 0:
                    known.append(sample)
    return known


def any_of(question: str) -> str:
    """The FTS5 expression for any word of a question."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(question.split()))


def measure(assistant: Library, person: Library, bare: apsw.Connection, *, rounds: int) -> Mapping[str, Readings]:
    """Ask the same questions in turns of the assistant's library, the person's, and the bare index."""
    questions = [Corpus(seed).question for seed in (3, 3, 3)]

    def search(library: Library, question: str) -> float:
        return elapsed_ms(lambda: keepwell.perform(library, "memory_search", query=question, limit=LIMIT))

    def scan(question: str) -> float:
        return elapsed_ms(lambda: bare.execute(BARE_QUERY, (any_of(question), LIMIT)).fetchall())

    return in_turns(
        rounds,
        (
            lambda: {"bare": scan(questions[0]())},
            lambda: {"assistant": search(assistant, questions[1]())},
            lambda: {"person": search(person, questions[2]())},
        ),
    )


def figures(size: int, readings: Mapping[str, Readings]) -> tuple[Figure, ...]:
    """The lines of one size."""
    bare, budget = readings["bare"], BUDGETS.get(size)
    return (
        Figure(f"{size:,}: floor, bare FTS5", bare),
        Figure(f"{size:,}: search, counted", readings["assistant"], floor=bare, budget=budget),
        Figure(f"{size:,}: search, not counted", readings["person"], floor=bare),
    )


def lost(library: Library, known: list[Sample]) -> list[str]:
    """The faults of searches for words that one lesson alone holds."""
    found = {sample.mark: keepwell.perform(library, "memory_search", query=sample.mark) for sample in known}
    return [
        f"the lesson of {sample.mark} was not found"
        for sample in known
        if [memory.text for memory in found[sample.mark].memories] != [sample.text]
    ]


def run(folder: Path, rounds: Mapping[int, int]) -> list[str]:
    """Grow a store from size to size, measure at each, and give the faults."""
    samples = iter(Corpus(4).sample, None)
    faults: list[str] = []
    lines: list[Figure] = []
    for grown, size in pairwise((0, *rounds)):
        start = time.perf_counter()
        known = fill(folder, samples, size - grown)
        print(f"{size - grown:,} lessons saved in {time.perf_counter() - start:.1f} s", flush=True)
        with library_in(folder, client="benchmark") as assistant, library_in(folder) as person:
            bare = apsw.Connection(str(database_in(folder)), flags=apsw.SQLITE_OPEN_READONLY)
            lines += figures(size, measure(assistant, person, bare, rounds=rounds[size]))
            bare.close()
            faults += lost(person, known)
    print_table(lines)
    return faults


def main() -> int:
    """Run the benchmark and give the exit status."""
    parser = arguments(__doc__)
    parser.add_argument("--million", action="store_true", help="go on to 1,000,000 lessons; takes a while")
    chosen = parser.parse_args()
    rounds = (SHORT if chosen.short else USUAL) | (MILLION if chosen.million else {})
    with temporary_folder() as folder:
        print_machine()
        return status(run(folder, rounds))


if __name__ == "__main__":
    sys.exit(main())
