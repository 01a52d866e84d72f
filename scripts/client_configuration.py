"""Ready-to-paste configuration for MCP clients, with the absolute path of an installed keepwell."""

import json
import shlex
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Block:
    """One client's configuration: whose, where it goes, and the text to paste."""

    client: str
    place: str
    text: str


def blocks(command: str) -> tuple[Block, ...]:
    """The configuration of each client for the keepwell at `command`."""
    line = shlex.join(["claude", "mcp", "add", "keepwell", "--", command, *arguments("claude-code")])
    return (
        Block("Claude Code", "in a terminal", line),
        Block("Claude Code", ".mcp.json in the project", _json("mcpServers", _stdio(command, "claude-code"))),
        Block("Codex", "~/.codex/config.toml", _toml(command, "codex")),
        Block("Cursor", ".cursor/mcp.json in the project", _json("mcpServers", _entry(command, "cursor"))),
        Block("VS Code", ".vscode/mcp.json in the project", _json("servers", _stdio(command, "vscode"))),
        Block("any other client", "its MCP configuration", _json("mcpServers", _entry(command, "my-assistant"))),
    )


def arguments(client: str) -> list[str]:
    """What follows the command."""
    return ["serve", "--client", client, "--allow-write"]


def _entry(command: str, client: str) -> dict[str, Any]:
    return {"command": command, "args": arguments(client)}


def _stdio(command: str, client: str) -> dict[str, Any]:
    return {"type": "stdio", **_entry(command, client)}


def _json(key: str, entry: dict[str, Any]) -> str:
    return json.dumps({key: {"keepwell": entry}}, indent=2, ensure_ascii=False)


def _toml(command: str, client: str) -> str:
    # JSON's strings and arrays of strings are TOML's basic strings and arrays
    words = json.dumps(arguments(client), ensure_ascii=False)
    return f"[mcp_servers.keepwell]\ncommand = {json.dumps(command, ensure_ascii=False)}\nargs = {words}"
