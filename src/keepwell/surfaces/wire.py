"""The stdio transport: one JSON-RPC message a line, over descriptors that nobody else can reach.

The SDK's own stdio transport drops broken lines without an answer and cancels calls when the input ends; this one
answers the first and waits a moment for the second. Knows lines, messages and what is still unanswered; knows no
method, no tool and nothing of how the process ends. Runs under asyncio only.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from keepwell.surfaces.descriptors import ChunkReader, claimed_standard_streams, write_all
from keepwell.surfaces.strictjson import Refused, read_message

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest line that is read, without its LF; a longer one is thrown away and refused."""

EOF_GRACE_SECONDS: Final = 0.5
"""How long calls that are still running may take to answer once the client has closed our input."""

_ROOM_BYTES: Final = 32 * 1024 * 1024
_BYTES_PER_CALL: Final = 4 * 1024

_Inbound = SessionMessage | Exception


@asynccontextmanager
async def open_wire(
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    eof_grace: float = EOF_GRACE_SECONDS,
    on_end: Callable[[], None] = lambda: None,
    already_read: bytes = b"",
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[_Inbound], "ServerOutput"]]:
    """The two streams for `Server.run`, over standard input and output of this process.

    `on_end` is called, once, when no more will be passed on and the server is about to be told: the input has ended and
    its calls are answered or out of grace, or nobody reads our output any more. `already_read` are bytes that were
    taken from descriptor 0 before. Raises OSError if descriptor 0 or 1 is closed.
    """
    with claimed_standard_streams() as (source, sink):
        to_server, from_client = anyio.create_memory_object_stream[_Inbound](0)
        ledger = _Ledger()
        output = _Output(sink, ledger)
        pump = _Pump(to_server, output, ledger, max_line_bytes=max_line_bytes)
        async with from_client, to_server, anyio.create_task_group() as tasks:
            tasks.start_soon(pump.run, _chunks(source, already_read), eof_grace, on_end)
            yield from_client, ServerOutput(output, ledger)
            tasks.cancel_scope.cancel()


class ServerOutput:
    """The write stream of the SDK's server: what it sends is written as one line and settles the call it answers."""

    def __init__(self, output: "_Output", ledger: "_Ledger") -> None:
        self._output = output
        self._ledger = ledger
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; returns when the client's pipe has taken all of it.

        Raises ClosedResourceError after `aclose`, BrokenResourceError when the client reads no more.
        """
        if self._closed:
            raise anyio.ClosedResourceError
        try:
            await self._output.write(item.message)
        finally:
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._ledger.settle(item.message.id)

    async def aclose(self) -> None:
        """Take no more messages."""
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Ledger:
    """What was passed on and is not settled, and how many bytes wait here because of it.

    Requests are booked under the text of their id, as the SDK takes 7 and "7" for the same when it cancels.
    """

    def __init__(self) -> None:
        self._unsettled: defaultdict[str, list[int]] = defaultdict(list)
        self._held = 0
        self._changed = anyio.Event()

    def book(self, message: JSONRPCMessage, size: int) -> None:
        """Take note of a message that goes to the server: a call to settle, or the end of one."""
        if isinstance(message, JSONRPCRequest):
            self._unsettled[str(message.id)].append(size + _BYTES_PER_CALL)
            self._held += size + _BYTES_PER_CALL
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._release(self._unsettled.pop(str((message.params or {}).get("requestId")), []))

    def settle(self, reply_id: RequestId | None) -> None:
        sizes = self._unsettled.get(str(reply_id), [])
        self._release([sizes.pop()] if sizes else [])
        if not sizes:
            self._unsettled.pop(str(reply_id), None)

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Count an answer as waiting while it is written."""
        self._held += size
        try:
            yield
        finally:
            self._release([size])

    async def until_room(self) -> None:
        while self._held > _ROOM_BYTES:
            await self._changed.wait()

    async def until_settled(self) -> None:
        while self._unsettled:
            await self._changed.wait()

    def _release(self, sizes: list[int]) -> None:
        self._held -= sum(sizes)
        self._changed.set()
        self._changed = anyio.Event()


class _Output:
    """The one writer: messages leave whole, in the order they were given, without holding up the event loop."""

    def __init__(self, sink: int, ledger: _Ledger) -> None:
        self._sink = sink
        self._ledger = ledger
        self.heard: Final = anyio.CancelScope()  # cancelled once nobody reads any more
        self._turn = anyio.Lock()
        # A thread of its own: forty busy tool calls use up those that the event loop shares out.
        self._thread = anyio.CapacityLimiter(1)

    async def write(self, message: JSONRPCMessage) -> None:
        line = _line(message)
        with self._ledger.holding(len(line)):
            async with self._turn:
                await self._write(line)

    async def _write(self, line: bytes) -> None:
        try:
            await anyio.to_thread.run_sync(write_all, self._sink, line, limiter=self._thread)
        except OSError:
            self.heard.cancel()
            raise anyio.BrokenResourceError from None


class _Pump:
    """Carries what the client sends to the server, and answers what is no message."""

    def __init__(
        self, server: MemoryObjectSendStream[_Inbound], output: _Output, ledger: _Ledger, *, max_line_bytes: int
    ) -> None:
        self._server = server
        self._output = output
        self._ledger = ledger
        self._max_line_bytes = max_line_bytes

    async def run(self, chunks: AsyncIterator[bytes], eof_grace: float, on_end: Callable[[], None]) -> None:
        """Pass on all of `chunks`, wait until all calls are settled or the grace is over; end the server's input."""
        with self._output.heard, suppress(anyio.BrokenResourceError):
            await self._pass_on(chunks)
            with anyio.move_on_after(eof_grace):
                await self._ledger.until_settled()
        on_end()
        self._server.close()

    async def _pass_on(self, chunks: AsyncIterator[bytes]) -> None:
        lines = _LineCutter(self._max_line_bytes)
        async for chunk in chunks:
            await self._take_all(lines.feed(chunk))
        await self._take_all(lines.feed(b"\n"))

    async def _take_all(self, lines: Iterator[bytes | None]) -> None:
        for line in lines:
            if line is None or line.strip():
                await self._take(line)

    async def _take(self, line: bytes | None) -> None:
        await self._ledger.until_room()
        try:
            message = self._message(line)
        except Refused as refused:
            if refused.answered:
                await self._output.write(_refusal(refused))
            return
        self._ledger.book(message, len(line or b""))
        await self._server.send(SessionMessage(message))

    def _message(self, line: bytes | None) -> JSONRPCMessage:
        if line is None:
            raise Refused(INVALID_REQUEST, f"The line is longer than {self._max_line_bytes} bytes, the limit.")
        try:
            return jsonrpc_message_adapter.validate_python(read_message(line), by_name=False)
        except ValidationError:
            raise Refused(INVALID_REQUEST, "The line is no JSON-RPC request, notification or response.") from None


class _LineCutter:
    """Cuts chunks into lines and never holds more than the limit of one line plus one chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start = bytearray()
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that `chunk` completes, without their LF; None for each that was too long."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield None if self._too_long else bytes(self._start)
            self._start, self._too_long = bytearray(), False
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._too_long or len(self._start) + len(piece) > self._limit:
            self._start, self._too_long = bytearray(), True
        else:
            self._start += piece


async def _chunks(source: int, already_read: bytes) -> AsyncIterator[bytes]:
    yield already_read
    reader = ChunkReader(source)
    while chunk := await reader.chunk():
        yield chunk


def _line(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except (ValueError, RecursionError):
        # Too deep, or half a surrogate pair: without any line the caller would wait for ever.
        return _line(_unwritable(message))


def _unwritable(message: JSONRPCMessage) -> JSONRPCError:
    reply_id = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
    error = ErrorData(code=INTERNAL_ERROR, message="The answer cannot be written as JSON.")
    return JSONRPCError(jsonrpc="2.0", id=reply_id, error=error)


def _refusal(refused: Refused) -> JSONRPCError:
    error = ErrorData(code=refused.code, message=refused.sentence)
    return JSONRPCError(jsonrpc="2.0", id=refused.reply_id, error=error)
