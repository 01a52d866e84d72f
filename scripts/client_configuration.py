"""Ready-to-paste configuration for MCP clients, with the absolute path of an installed keepwell."""

import json
import shlex
import sys
from dataclasses import dataclass
from typing import Any, Final

EDITOR_FOLDER: Final = "${workspaceFolder}"
"""What Cursor and VS Code put the open folder's path in for; they may start servers in another one."""


@dataclass(frozen=True, slots=True)
class Block:
    """One client's configuration: whose, where it goes, its language (`sh`, `json` or `toml`), the text to paste."""

    client: str
    place: str
    language: str
    text: str


def blocks(command: str) -> tuple[Block, ...]:
    """The configuration of each client for the keepwell at `command`, an absolute path."""
    claude = _entry(command, "claude-code")
    line = shlex.join(["claude", "mcp", "add", "keepwell", "--", command, *claude["args"]])
    cursor = _entry(command, "cursor", "--workspace", EDITOR_FOLDER)
    code = _entry(command, "vscode", "--workspace", EDITOR_FOLDER)
    return (
        Block("Claude Code", "in a terminal, in the project", "sh", line),
        Block("Claude Code", "or in the file .mcp.json of the project", "json", _json("mcpServers", claude)),
        Block("Codex", "~/.codex/config.toml", "toml", _toml(_entry(command, "codex"))),
        Block("Cursor", ".cursor/mcp.json in the project", "json", _json("mcpServers", cursor)),
        Block("VS Code", ".vscode/mcp.json in the project", "json", _json("servers", code)),
        Block(
            "Any other client",
            'its MCP configuration (add "--workspace", "FOLDER" if it starts servers outside the project)',
            "json",
            _json("mcpServers", _entry(command, "my-assistant")),
        ),
    )


def page(command: str) -> str:
    """All blocks as Markdown."""
    return "\n".join(
        f"{block.client}: {block.place}\n\n```{block.language}\n{block.text}\n```\n" for block in blocks(command)
    )


def _entry(command: str, client: str, *more: str) -> dict[str, Any]:
    return {"type": "stdio", "command": command, "args": ["serve", "--client", client, "--allow-write", *more]}


def _json(key: str, entry: dict[str, Any]) -> str:
    # one argument a line would make the page four times as long
    words = ", ".join(map(_quoted, entry["args"]))
    fields = [f'"type": {_quoted(entry["type"])}', f'"command": {_quoted(entry["command"])}', f'"args": [{words}]']
    inner = ",\n      ".join(fields)
    return f'{{\n  "{key}": {{\n    "keepwell": {{\n      {inner}\n    }}\n  }}\n}}'


def _toml(entry: dict[str, Any]) -> str:
    words = ", ".join(map(_quoted, entry["args"]))
    return f"[mcp_servers.keepwell]\ncommand = {_quoted(entry['command'])}\nargs = [{words}]"


def _quoted(text: str) -> str:
    """A string that is both JSON and a basic string of TOML, which wants U+007F escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


if __name__ == "__main__":
    print(page(sys.argv[1]))
