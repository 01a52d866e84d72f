"""Doing something once it has been quiet for a while, on a thread of its own."""

import threading
from collections.abc import Callable
from typing import Final


class WhenQuiet:
    """Calls `act` once after the last `stir` of a series; `stop` forgets it, and waits for one that runs."""

    def __init__(self, act: Callable[[], None], *, seconds: float) -> None:
        self._act: Final = act
        self._seconds: Final = seconds
        self._guard: Final = threading.Lock()
        self._timer: threading.Timer | None = None

    def stir(self) -> None:
        """Something happened: begin to wait anew."""
        with self._guard:
            if self._timer:
                self._timer.cancel()
            self._timer = threading.Timer(self._seconds, self._act)
            # a process must not stay for it
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Forget it."""
        with self._guard:
            timer, self._timer = self._timer, None
        if timer:
            timer.cancel()
            timer.join()
