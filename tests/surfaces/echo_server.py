"""A small server over our wire and lifetime, started as a process by the tests."""

# ruff: noqa: T201  # it prints where it should not, on purpose

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from keepwell.surfaces.lifetime import Ending, serve_until_end
from keepwell.surfaces.standard_files import ensure_standard_files

ensure_standard_files()

import anyio  # noqa: E402  # a real server, too, sees to its standard files before it loads anything large
import anyio.to_thread  # noqa: E402
from mcp.server.context import ServerRequestContext  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from mcp_types import (  # noqa: E402
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from keepwell.surfaces.wire import EOF_GRACE_SECONDS, MAX_LINE_BYTES, open_wire  # noqa: E402

Arguments = Mapping[str, Any]


def echo(arguments: Arguments) -> object:
    """The text as it came in."""
    return arguments.get("text")


def nap(arguments: Arguments) -> object:
    """Block a worker thread, and say on standard error that it was not killed meanwhile."""
    time.sleep(arguments["seconds"])
    print("awake", file=sys.stderr)
    return "awake"


def noise(arguments: Arguments) -> object:
    """Write to standard output in every way there is."""
    print("a stray print")
    sys.stdout.flush()
    print("a stray print that stays in the buffer")
    os.write(1, b"a stray write\n")
    subprocess.run([sys.executable, "-c", "print('a stray child')"], check=True)
    return "made"


def lowest_free_descriptor(arguments: Arguments) -> object:
    """The number that the next opened file gets."""
    with Path(__file__).open("rb") as file:
        return file.fileno()


def child_reads_nothing(arguments: Arguments) -> object:
    """What a child finds on its standard input."""
    child = subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], capture_output=True)
    return child.stdout.decode().strip()


def warn(arguments: Arguments) -> object:
    """Write to standard error."""
    print("✓ 記憶 🐘", file=sys.stderr)
    return "warned"


def begin_the_end(arguments: Arguments) -> object:
    """Ask for the end, with so long a grace that a test can look at the time before it."""
    return "begun"


def half(arguments: Arguments) -> object:
    """An answer that cannot be written."""
    return "\ud800"


TOOLS: dict[str, Callable[[Arguments], object]] = {
    tool.__name__: tool
    for tool in (echo, nap, noise, lowest_free_descriptor, child_reads_nothing, warn, begin_the_end, half)
}


async def list_tools(ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def call_tool(ending: Ending, ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    if params.name == "begin_the_end":
        ending.begin(3, within=600)
    value = await anyio.to_thread.run_sync(TOOLS[params.name], params.arguments or {})
    return CallToolResult(content=[TextContent(text=str(value))], structured_content={"value": value})


async def serve(options: argparse.Namespace, ending: Ending) -> None:
    already_read = os.read(0, options.read_first) if options.read_first else b""
    server = Server("echo", on_list_tools=list_tools, on_call_tool=partial(call_tool, ending))
    async with open_wire(
        max_line_bytes=options.max_line_bytes,
        eof_grace=options.eof_grace,
        on_end=ending.input_ended,
        already_read=already_read,
    ) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def stop() -> None:
    print("stopping", file=sys.stderr)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-line-bytes", type=int, default=MAX_LINE_BYTES)
    parser.add_argument("--eof-grace", type=float, default=EOF_GRACE_SECONDS)
    parser.add_argument("--read-first", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(anyio.run(partial(serve_until_end, partial(serve, parsed()), on_stop=stop)))
