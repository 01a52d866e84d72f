"""The descriptors of the stdio transport: claimed for the protocol, read and written as bytes.

Knows files, threads and the event loop; knows nothing of messages. Imports neither the SDK nor anything of keepwell, so
that the first line can be read before the SDK is loaded.
"""

import asyncio
import fcntl
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_FIRST_PRIVATE: Final = 3
_CHUNK_BYTES: Final = 64 * 1024


@contextmanager
def claimed_standard_streams() -> Iterator[tuple[int, int]]:
    """Private duplicates of descriptors 0 and 1, which meanwhile are the null device and standard error.

    So a stray print, a C library or a child process can neither read a message nor break one. The duplicate of 0 is not
    closed at the end: a thread may still be reading it. Raises OSError if descriptor 0 or 1 is closed.
    """
    source = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    sink = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    try:
        _divert()
        yield source, sink
    finally:
        _restore(source, sink)


def _divert() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(null, 1)
    os.close(null)


def _restore(source: int, sink: int) -> None:
    # What a stray print left in the buffer would otherwise reach the wire when the process exits.
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
    os.dup2(source, 0)
    os.dup2(sink, 1)
    os.close(sink)


class ChunkReader:
    """Reads a descriptor in a daemon thread, one chunk each time one is asked for.

    A read cannot be interrupted, so it must not happen in a thread that the exit of the process waits for.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._awaited: asyncio.Future[bytes] = self._loop.create_future()
        self._wanted = threading.Semaphore(0)
        threading.Thread(target=self._read_on_demand, name="keepwell-input", daemon=True).start()

    async def chunk(self) -> bytes:
        """The next bytes; empty at the end of the input, which an unreadable input counts as."""
        self._awaited = self._loop.create_future()
        self._wanted.release()
        return await self._awaited

    def _read_on_demand(self) -> None:
        chunk = b"more"
        while chunk:
            self._wanted.acquire()
            chunk = _read(self._source)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver, chunk)

    def _deliver(self, chunk: bytes) -> None:
        if not self._awaited.done():
            self._awaited.set_result(chunk)


def _read(source: int) -> bytes:
    while True:
        try:
            return os.read(source, _CHUNK_BYTES)
        except BlockingIOError:
            _wait_for(source, select.POLLIN)
        except OSError:
            return b""


def write_all(sink: int, data: bytes) -> None:
    """Write every byte of `data`, waiting as long as the reader takes. Raises OSError if there is none any more."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:
            _wait_for(sink, select.POLLOUT)


def _wait_for(descriptor: int, event: int) -> None:
    # Whoever started us may have made the pipe non-blocking, and may rely on it: the mode is not ours to change.
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()
