"""From settings to a library: the only module that names concrete engines and reads clock and randomness."""

import os
import time
from collections.abc import Callable

from keepwell.model.identity import uuid7
from keepwell.store.world import World


def real_world() -> World:
    """The machine's clocks and randomness."""
    return World(
        now_ms=lambda: time.time_ns() // 1_000_000,
        elapsed_ms=lambda: time.monotonic_ns() // 1_000_000,
        pause_ms=lambda ms: time.sleep(ms / 1000),
        random_bytes=os.urandom,
    )


def new_uid(world: World) -> Callable[[], str]:
    """A maker of fresh UUIDs of version 7."""
    return lambda: uuid7(world.now_ms(), world.random_bytes(10))
