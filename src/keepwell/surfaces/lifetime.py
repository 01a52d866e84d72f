"""The end of a stdio server process: always within about a second, never with an orphan or a traceback.

Knows signals, the parent process and the exit status; knows nothing of the protocol or the store. The end has one way
in, `Ending.begin`, whoever asks for it, and one way out that needs nobody's help: a thread that ends the process.
"""

import asyncio
import errno
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Final

import anyio

GRACE_SECONDS: Final = 0.7
"""How long running work may take to finish once the end has begun; then the process is ended under it."""

GRACE_AFTER_INPUT_SECONDS: Final = 0.4
"""The same after the end of the input, where the transport has already waited for answers."""

_PARENT_POLL_SECONDS: Final = 0.5
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OK: Final = 0
_FAILED: Final = 1


class Ending:
    """The end of this process, from whoever asks for it first to the exit.

    Once begun, `on_stop` is called in a thread (it makes running work stop waiting, and must not raise), then `cancel`
    (it makes the event loop drop the server), and when the grace is over the process is ended, whatever else happens.
    """

    def __init__(self, *, on_stop: Callable[[], None], cancel: Callable[[], object]) -> None:
        self._on_stop = on_stop
        self._cancel = cancel
        self._statuses: list[int] = []
        self._graces: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._wound_down = threading.Event()
        threading.Thread(target=self._see_through, name="keepwell-ending", daemon=True).start()

    @property
    def begun(self) -> bool:
        """Whether anybody has asked for the end."""
        return bool(self._statuses)

    @property
    def status(self) -> int:
        """The exit status that whoever was first has asked for."""
        return self._statuses[0]

    def begin(self, status: int, *, within: float = GRACE_SECONDS) -> None:
        """End the process with `status` in `within` seconds at the latest; the first call counts, of any thread."""
        self._statuses.append(status)
        self._graces.put(within)

    def input_ended(self) -> None:
        """Begin the usual end: the client has closed our input, and the calls before that are answered."""
        self.begin(_OK, within=GRACE_AFTER_INPUT_SECONDS)

    def complete(self, status: int) -> int:
        """Begin if nobody has, wait until `on_stop` has returned, and give the exit status.

        After that the caller may close what `on_stop` reaches for.
        """
        self.begin(status)
        self._wound_down.wait()
        return self.status

    def _see_through(self) -> None:
        grace = self._graces.get()
        threading.Thread(target=self._wind_down, name="keepwell-winding-down", daemon=True).start()
        time.sleep(grace)
        os._exit(self.status)

    def _wind_down(self) -> None:
        try:
            self._on_stop()
        finally:
            with suppress(RuntimeError):  # the event loop is closed: there is nothing left to cancel
                self._cancel()
            self._wound_down.set()


async def serve_until_end(
    serve: Callable[[Ending], Awaitable[None]], *, on_stop: Callable[[], None], parent: int | None = None
) -> int:
    """Run `serve` until it returns, a signal comes or the parent process dies; gives the exit status.

    To be called in the main thread, as the last thing the process does: signals stay with us, and the process is ended
    soon after this returns or raises. `on_stop` and the graces are those of `Ending`, which `serve` gets in order to
    tell of the end of the input. `parent` is the pid of the parent if it was noted earlier, before costly imports.
    """
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        ending = Ending(on_stop=on_stop, cancel=partial(loop.call_soon_threadsafe, scope.cancel))
        _end_on_signals(ending)
        _end_with_parent(ending, os.getppid() if parent is None else parent)
        try:
            await serve(ending)
        except Exception:
            ending.complete(_FAILED)
            raise
    return ending.complete(_OK)


def _end_on_signals(ending: Ending) -> None:
    # Handlers in Python wait for the main thread, which may sleep on, or be busy; the numbers written to a pipe do not.
    numbers, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    for number in _SIGNALS:
        # Under nohup the hang-up is ignored on purpose.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    threading.Thread(target=_obey, args=(numbers, ending), name="keepwell-signals", daemon=True).start()


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Be there: a signal without a handler in Python is not written to the pipe."""


def _obey(numbers: int, ending: Ending) -> None:
    while number := os.read(numbers, 1):
        if number[0] not in _SIGNALS:
            continue
        if ending.begun:
            os._exit(128 + number[0])
        ending.begin(128 + number[0])


def _end_with_parent(ending: Ending, parent: int) -> None:
    def watch() -> None:
        _wait_for_end_of(parent)
        ending.begin(_OK)

    # Process 1 outlives us, and 0 stands for a parent outside of our container.
    if parent > 1:
        threading.Thread(target=watch, name="keepwell-parent", daemon=True).start()


def _wait_for_end_of(parent: int) -> None:
    try:
        descriptor = _process_descriptor(parent)
    except OSError:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_SECONDS)
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    # If it died before the descriptor was opened, the pid may be a stranger's by now.
    if os.getppid() == parent:
        poll.poll()
    os.close(descriptor)


def _process_descriptor(pid: int) -> int:
    """A descriptor that becomes readable when process `pid` ends. Raises OSError where the system has none to give."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.pidfd_open(pid)
