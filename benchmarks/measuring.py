"""Timing for the benchmarks: readings, ratios to a floor that was measured beside them, and a plain table.

A figure alone says as much about the machine as about the program. So each one stands beside a floor, the least that
the same work can cost, and both are measured in turns: what disturbs the machine disturbs both.
"""

import argparse
import math
import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import apsw

Readings = Sequence[float]
"""What was read of one thing, round after round."""

_HEADINGS: Final = ("what", "median", "p95", "x floor", "budget", "met")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that the median, the 95th percentile or the median ratio to the floor may be."""

    limit: float
    of: Literal["median", "p95", "ratio"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. The floor's readings come from the same rounds, in the same order."""

    what: str
    readings: Readings
    unit: str = "ms"
    floor: Readings | None = None
    budget: Budget | None = None

    @property
    def ratio(self) -> float | None:
        """The median over the rounds of reading by floor."""
        if self.floor is None:
            return None
        return statistics.median(mine / least for mine, least in zip(self.readings, self.floor, strict=True))

    def cells(self) -> tuple[str, ...]:
        """The line's cells, in the order of the headings."""
        median, p95 = statistics.median(self.readings), quantile(self.readings, 0.95)
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        told, met = "", ""
        if self.budget:
            held = {"median": median, "p95": p95, "ratio": self.ratio or 0.0}[self.budget.of]
            unit = "" if self.budget.of == "ratio" else f" {self.unit}"
            told = f"{self.budget.of} <= {self.budget.limit:,g}{unit}"
            met = "yes" if held <= self.budget.limit else "NO"
        return self.what, _told(median, self.unit), _told(p95, self.unit), ratio, told, met


def quantile(readings: Readings, share: float) -> float:
    """The smallest reading that at least this share of all readings does not exceed (nearest rank)."""
    ordered = sorted(readings)
    return ordered[math.ceil(share * len(ordered)) - 1]


def elapsed_ms(action: Callable[[], object]) -> float:
    """How long an action takes, in milliseconds of wall time."""
    start = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - start) / 1e6


def in_turns(rounds: int, actions: Sequence[Callable[[], Mapping[str, float]]]) -> Mapping[str, Readings]:
    """Run every action once a round and gather their readings by name.

    Every other round runs backwards, so that none always goes first; an unmeasured round before warms caches.
    """
    for action in actions:
        action()
    gathered: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for action in actions if number % 2 == 0 else reversed(actions):
            for name, reading in action().items():
                gathered[name].append(reading)
    return gathered


def print_machine() -> None:
    """Say what the figures were measured on; the load is that of the last minute, before this run."""
    python, sqlite = platform.python_version(), apsw.sqlite_lib_version()
    load = os.getloadavg()[0]
    print(f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f}, Python {python}, SQLite {sqlite}")


def print_table(figures: Sequence[Figure]) -> None:
    """Print the figures in columns."""
    rows = [_HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


def arguments(about: str | None) -> argparse.ArgumentParser:
    """A parser with the flag that every benchmark has."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few seconds, to see that it works; not for figures")
    return parser


def status(faults: Sequence[str]) -> int:
    """Tell what was wrong, and give the exit status: wrong results fail a run, slow ones never do."""
    for fault in faults:
        print(f"WRONG: {fault}")
    return 1 if faults else 0


def _told(value: float, unit: str) -> str:
    return f"{value:,.{2 if value < 10 else 1}f} {unit}"
