"""A client that speaks to a stdio server in raw lines, as no well-behaved client would.

Every wait has a generous limit and fails with what the process wrote to standard error.
"""

import json
import os
import queue
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

Message = dict[str, Any]

PATIENCE_SECONDS: Final = 30.0
"""How long to wait for what should happen at once: starting Python and the SDK on a busy machine takes seconds."""

LEGACY: Final = "2025-11-25"

HANDSHAKE: Final = (
    b'{"jsonrpc":"2.0","id":"handshake","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"raw","version":"0"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
"""What a client of the `initialize` era sends first, for who drives a process without `RawPipe`."""

_SOURCE: Final = Path(__file__).resolve().parents[2] / "src"


def environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the tests and `added`, such that Python finds this source tree, installed or not."""
    return {**os.environ, "PYTHONPATH": str(_SOURCE), **(added or {})}


class RawPipe:
    """A process and the three pipes to it. As a context manager it kills the process at the end, if still there."""

    def __init__(
        self, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        """Start `command` in `environment(env)`."""
        self.process: Final = subprocess.Popen(
            [str(part) for part in command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(env),
            cwd=cwd,
        )
        assert self.process.stdin is not None
        # A server that reads no more must fail the test, not hold it up.
        os.set_blocking(self.process.stdin.fileno(), False)
        self.output: Final = _Drain(self.process.stdout)
        self.errors: Final = _Drain(self.process.stderr)
        self._last_id = 0

    def send_line(self, line: bytes) -> None:
        """Send `line` and an LF, in one write."""
        self.send_bytes(line + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send exactly `data`."""
        assert self.process.stdin is not None
        descriptor = self.process.stdin.fileno()
        rest = memoryview(data)
        while rest:
            assert select.select([], [descriptor], [], PATIENCE_SECONDS)[1], f"not read; {self.errors.text}"
            rest = rest[os.write(descriptor, rest) :]

    def send(self, message: object) -> None:
        """Send `message` as one line of JSON, with raw non-ASCII text."""
        self.send_line(json.dumps(message, ensure_ascii=False).encode())

    def request(self, method: str, params: object = None, *, request_id: int | str | None = None) -> int | str:
        """Send a request without waiting for its answer; gives its id."""
        self._last_id += 1
        chosen = self._last_id if request_id is None else request_id
        self.send({"jsonrpc": "2.0", "id": chosen, "method": method, "params": {} if params is None else params})
        return chosen

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": {} if params is None else params})

    def next(self, *, timeout: float = PATIENCE_SECONDS) -> Message:
        """The next message of the server; fails if the line is not one JSON object, or if none comes."""
        line = self.output.line(timeout)
        assert line is not None, f"no message; standard error:\n{self.errors.text}"
        message = json.loads(line)
        assert isinstance(message, dict), line
        return message

    def answer(self, method: str, params: object = None, *, timeout: float = PATIENCE_SECONDS) -> Message:
        """Send a request and give its answer, skipping notifications; fails if another request is answered first."""
        request_id = self.request(method, params)
        while "id" not in (message := self.next(timeout=timeout)):
            pass
        assert message["id"] == request_id, message
        return message

    def call(self, tool: str, arguments: Mapping[str, object] | None = None) -> Message:
        """Call a tool and give its result; fails on a protocol error."""
        answer = self.answer("tools/call", {"name": tool, "arguments": dict(arguments or {})})
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    def initialize(self, version: str = LEGACY) -> Message:
        """Shake hands as a client of the `initialize` era; gives the result."""
        client = {"name": "rawpipe", "version": "0"}
        answer = self.answer("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
        self.notify("notifications/initialized")
        result: Message = answer["result"]
        return result

    def close_stdin(self) -> None:
        """Let the server see the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def wait(self, *, timeout: float = PATIENCE_SECONDS) -> int:
        """Wait for the end of the process, and of its output; gives its exit status, negative if a signal killed it."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the process did not end; standard error:\n{self.errors.text}") from None
        self.output.wait_for_end(timeout)
        self.errors.wait_for_end(timeout)
        return status

    def kill(self) -> None:
        """Kill the process, if it is still there, and close the pipes."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.output.close()
        self.errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class _Drain:
    """Reads a pipe to its end in a thread, so that the process never waits for us, and keeps every byte."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._read: list[bytes] = []
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    @property
    def raw(self) -> bytes:
        """Every byte so far."""
        return b"".join(self._read)

    @property
    def text(self) -> str:
        """Everything so far as text."""
        return self.raw.decode(errors="backslashreplace")

    def line(self, timeout: float) -> bytes | None:
        """The next line with its LF, or None if none comes."""
        try:
            return self._lines.get(timeout=timeout) or None
        except queue.Empty:
            return None

    def wait_for_end(self, timeout: float) -> None:
        """Wait until every process that holds the other end has closed it; fails if one does not."""
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "somebody still holds the pipe open"

    def close(self) -> None:
        """Close our end."""
        self._thread.join(PATIENCE_SECONDS)
        self._pipe.close()

    def _drain(self) -> None:
        line = bytearray()
        while chunk := os.read(self._pipe.fileno(), 65536):
            self._read.append(chunk)
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                self._lines.put(bytes(line + end + b"\n"))
                line.clear()
            line += rest
        self._lines.put(bytes(line))
