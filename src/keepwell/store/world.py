"""What an engine needs of the outside world, handed in by the wiring so that tests can choose it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class World:
    """Clock, patience and chance. `now_ms` is UTC wall time, `elapsed_ms` never goes back; both in milliseconds."""

    now_ms: Callable[[], int]
    elapsed_ms: Callable[[], int]
    pause_ms: Callable[[float], None]
    random_bytes: Callable[[int], bytes]
