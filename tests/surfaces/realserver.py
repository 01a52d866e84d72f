"""The real server as a client starts it, in a workspace, with a store and a home of the test's own."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from rawpipe import RawPipe, environment

LAUNCH: Final = (sys.executable, "-m", "keepwell", "serve")
EVIDENCE: Final = [{"description": "seen", "source_uri": "file.txt"}]


@dataclass(frozen=True)
class Place:
    """Where a test's servers run: one store and one folder of projects below `root`."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "store" / "memory.db"

    def project(self, name: str = "project") -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        return folder

    def environment(self, added: Mapping[str, str] | None = None) -> dict[str, str]:
        """A bare environment, so that nothing of the developer's own machine leaks in."""
        usual = {"PATH": os.environ["PATH"], "HOME": str(self.root), "PYTHONPATH": environment()["PYTHONPATH"]}
        return usual | dict(added or {})

    def command(self, *flags: str, workspace: Path | None = None) -> list[str]:
        folder = workspace or self.project()
        return [*LAUNCH, "--db", str(self.database), "--workspace", str(folder), "--client", "pi", *flags]

    def raw(self, *flags: str, workspace: Path | None = None, env: Mapping[str, str] | None = None) -> RawPipe:
        """A server with a raw pipe to it, after the handshake."""
        pipe = RawPipe(self.command(*flags, workspace=workspace), env=env)
        pipe.initialize()
        return pipe

    @asynccontextmanager
    async def client(self, *flags: str, mode: str = "auto", workspace: Path | None = None) -> AsyncIterator[Client]:
        """The SDK's own client, connected."""
        command, *arguments = self.command(*flags, workspace=workspace)
        server = StdioServerParameters(command=command, args=arguments, env=self.environment())
        async with Client(stdio_client(server), mode=mode) as connected:
            yield connected


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed and whose text and structured answer must say the same."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    [content] = result.content
    assert content.type == "text"
    answer = result.structured_content
    assert isinstance(answer, dict)
    assert json.loads(content.text) == answer
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must fail; its one line."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    [content] = result.content
    assert content.type == "text"
    assert "\n" not in content.text
    return content.text


def answer_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """The structured answer of a raw tool result that must be a success."""
    assert not result.get("isError"), result
    structured: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == structured
    return structured


def error_of(result: Mapping[str, Any]) -> str:
    """The one line of a raw tool result that must be an error."""
    assert result["isError"] is True, result
    text: str = result["content"][0]["text"]
    assert "\n" not in text
    return text
