"""How soon a server that a client starts can be used, what it then keeps in memory, and what its tool list costs.

A client starts the server over a real stdio pipe, shakes hands, and searches a store with a few lessons. Floors:
the bare interpreter (`python -I -c pass`), a hand-written loop with the standard library's SQLite that answers
`initialize` (`bare_server.py`), and `import mcp` alone, which every server on the official SDK pays.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from corpus import Corpus, Sample
from measuring import Budget, Figure, arguments, elapsed_ms, in_turns, print_machine, print_table, status
from stores import database_in, library_in, temporary_folder

import keepwell

CLIENT: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}
SOURCE: Final = Path(keepwell.__file__).parents[1]
LESSONS: Final = 20
BYTES_PER_TOKEN: Final = 4
TOKEN_BUDGETS: Final = {"default": 2_500, "all": 3_500}
PATIENCE_SECONDS: Final = 30


class Server:
    """A started server and the pipes to it; it ends with the block. Times count from just before the start."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONPATH": str(SOURCE)}
        self._start: Final = time.perf_counter_ns()
        self._process: Final = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._last_id = 0

    @property
    def age_ms(self) -> float:
        """Milliseconds since the start."""
        return (time.perf_counter_ns() - self._start) / 1e6

    def ask(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """Send a request, wait for the next line, and give the result; `RuntimeError` where there is none."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {}
        if answer.get("id") != self._last_id or "result" not in answer:
            raise RuntimeError(f"{method} was answered with {line!r}")
        result: dict[str, Any] = answer["result"]
        return result

    def shake_hands(self) -> float:
        """Initialize as a client does; gives the server's age when the answer was there."""
        self.ask("initialize", CLIENT)
        age = self.age_ms
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return age

    def resident_mb(self) -> float:
        """The memory that the process holds (VmRSS) in MB of 10^6 bytes; 0 where there is no /proc to tell."""
        with suppress(FileNotFoundError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024 / 1e6
        return 0.0

    def _send(self, message: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def serve(folder: Path, *flags: str) -> Server:
    """Start keepwell as a client's configuration would."""
    place = ("--db", str(database_in(folder)), "--workspace", str(folder / "project"), "--client", "benchmark")
    return Server([sys.executable, "-m", "keepwell", "serve", *place, "--allow-write", *flags], folder)


def keepwell_once(folder: Path, sample: Sample) -> Mapping[str, float]:
    """Start, shake hands, search for a lesson that is there, and look at the idle server's memory."""
    with serve(folder) as server:
        initialized = server.shake_hands()
        result = server.ask("tools/call", {"name": "memory_search", "arguments": {"query": sample.mark}})
        called = server.age_ms
        if sample.text not in (memory["text"] for memory in result["structuredContent"]["memories"]):
            raise RuntimeError("the first search did not find the lesson")
        return {"initialize": initialized, "first call": called, "memory": server.resident_mb()}


def bare_once(folder: Path) -> Mapping[str, float]:
    """The same with the hand-written loop, up to the handshake."""
    script = Path(__file__).with_name("bare_server.py")
    with Server([sys.executable, str(script), str(database_in(folder))], folder) as server:
        return {"bare initialize": server.shake_hands(), "bare memory": server.resident_mb()}


def python_once(name: str, code: str) -> Callable[[], Mapping[str, float]]:
    """An action that runs an isolated interpreter with this code, from start to end."""
    command = [sys.executable, "-I", "-c", code]
    return lambda: {name: elapsed_ms(lambda: subprocess.run(command, check=True))}


def measure(folder: Path, sample: Sample, *, rounds: int) -> tuple[Figure, ...]:
    """Start everything in turns."""
    readings = in_turns(
        rounds,
        (
            python_once("interpreter", "pass"),
            lambda: bare_once(folder),
            python_once("sdk", "import mcp"),
            lambda: keepwell_once(folder, sample),
        ),
    )
    loop, sdk = readings["bare initialize"], readings["sdk"]
    return (
        Figure("floor: interpreter alone", readings["interpreter"]),
        Figure("floor: loop, initialize answered", loop),
        Figure("floor: import mcp, start to end", sdk),
        Figure("initialize answered", readings["initialize"], floor=loop, budget=Budget(80, "median")),
        Figure("first tools/call answered", readings["first call"], floor=sdk, budget=Budget(1_200, "median")),
        Figure("floor: loop, memory", readings["bare memory"], "MB"),
        Figure("memory of the idle server", readings["memory"], "MB", readings["bare memory"], Budget(90, "median")),
    )


def print_tool_costs(folder: Path) -> None:
    """Say what the tool list costs a client that puts all of it before its model."""
    for toolsets, budget in TOKEN_BUDGETS.items():
        flags = () if toolsets == "default" else ("--tools", toolsets)
        with serve(folder, *flags) as server:
            server.shake_hands()
            tools = server.ask("tools/list", {})["tools"]
        size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())
        tokens = size // BYTES_PER_TOKEN
        met = "yes" if tokens <= budget else "NO"
        print(f"tools/list, {toolsets}: {len(tools)} tools, {size:,} bytes / 4 = {tokens:,}; budget {budget:,}: {met}")


def main() -> int:
    """Run the benchmark and give the exit status."""
    rounds = 2 if arguments(__doc__).parse_args().short else 30
    corpus = Corpus(2)
    samples = [corpus.sample() for _ in range(LESSONS)]
    with temporary_folder() as folder:
        with library_in(folder) as library:
            for sample in samples:
                keepwell.perform(library, "memory_add", **sample.arguments)
        print_machine()
        try:
            print_table(measure(folder, samples[0], rounds=rounds))
            print_tool_costs(folder)
        except RuntimeError as error:
            return status([str(error)])
    return status([])


if __name__ == "__main__":
    sys.exit(main())
