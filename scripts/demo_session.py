"""The demonstration: a real MCP client, a real server over stdio, a store of its own; what happens in plain text."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import anyio
from client_configuration import page
from mcp import Client, StdioServerParameters

TEXT = "Run the integration tests with `make check`; plain pytest skips them."
BETTER = "Run the integration tests with `just check`; plain pytest skips them."
QUESTION = {"query": "how is an integration test run here?"}


class Failed(Exception):
    """A step that did not do what it should."""


async def show(client: Client, heading: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool, print what was asked, and give the answer."""
    print(f"\n{heading}\n  > {tool} {json.dumps(arguments, ensure_ascii=False)}")
    result = await client.call_tool(tool, arguments)
    answer = result.structured_content
    if result.is_error or not isinstance(answer, dict):
        raise Failed(f"{tool}: {result.content}")
    return answer


def show_memories(answer: dict[str, Any], *, only: int) -> None:
    """Print the lessons that a search found; it must be that one and no other."""
    for memory in answer["memories"]:
        print(f"  < lesson {memory['id']}: {memory['text']}")
        print(f"    because: {memory['evidence'][0]['description']}")
    if [memory["id"] for memory in answer["memories"]] != [only]:
        raise Failed(f"the search should have found lesson {only} and nothing else.")


async def session(client: Client) -> None:
    """What an assistant would do, step by step."""
    tools = await client.list_tools()
    server = client.server_info
    print(f"  < {server and server.name} {server and server.version} offers {len(tools.tools)} tools")

    lesson = {"text": TEXT, "evidence": [{"description": "pytest said: 41 skipped.", "source_uri": "Makefile"}]}
    old = await show(client, "1. The assistant learned something and saves it.", "memory_add", lesson)
    print(f"  < saved as lesson {old['id']} of this project")

    found = await show(client, "2. Later it asks, in other words.", "memory_search", QUESTION)
    show_memories(found, only=old["id"])

    report = {"memory_id": old["id"], "verdict": "useful", "reason": "Ran the right command at once."}
    recorded = await show(client, "3. It helped, so the assistant says so.", "memory_feedback", report)
    print(f"  < {recorded['outcome']}")

    change = {
        "id": old["id"],
        "text": BETTER,
        "evidence": [{"description": "A justfile took the Makefile's place."}],
        "reason": "make is gone",
    }
    new = await show(client, "4. The command changes: the lesson is replaced in one step.", "memory_supersede", change)
    print(f"  < lesson {new['id']} replaces lesson {new['supersedes_id']}")

    found = await show(client, "5. The same question now finds the new lesson only.", "memory_search", QUESTION)
    show_memories(found, only=new["id"])

    kept = await show(client, "6. The old one can still be read by its id.", "memory_get", {"id": old["id"]})
    show_record(kept)


def show_record(details: dict[str, Any]) -> None:
    """Print an archived lesson with its history; it must be whole."""
    memory, counts = details["memory"], details["memory"]["statistics"]
    print(f"  < {memory['status']}: {memory['text']}")
    print(f"    delivered: {counts['retrieval_count']}, reported useful: {counts['useful_count']}")
    for event in reversed(details["events"]):
        print(f"    {event['created_at']} {event['action']}")
    if (memory["status"], memory["text"], counts["useful_count"]) != ("archived", TEXT, 1):
        raise Failed("the old lesson should be archived, unchanged, with one report.")


async def demonstrate(command: str) -> None:
    """Run the session against a fresh store and a fresh project."""
    with tempfile.TemporaryDirectory(prefix="keepwell-demo-") as folder:
        home, project = Path(folder) / "home", Path(folder) / "my-project"
        project.mkdir()
        subprocess.run(["git", "init", "--quiet", str(project)], check=True, env=without_git_settings())
        arguments = ["serve", "--db", str(home / "memory.db"), "--client", "demo", "--allow-write"]
        print(f"A server starts, as an MCP client does it, in {project}\n  > {shlex.join([command, *arguments])}")
        # a home of its own: neither the settings nor the memory of whoever runs this are touched
        server = StdioServerParameters(command=command, args=arguments, cwd=project, env={"HOME": str(home)})
        async with Client(server) as client:
            await session(client)


def without_git_settings() -> dict[str, str]:
    """The environment without what a Git hook or a shell says about another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def main() -> None:
    """Show keepwell at work, then how to connect it."""
    command = shutil.which("keepwell", path=sysconfig.get_path("scripts"))
    if command is None:
        sys.exit("keepwell is not installed beside this Python; run scripts/demo.")
    failures: list[BaseException] = []
    try:
        anyio.run(demonstrate, command)
    except* (Failed, OSError) as group:
        failures.extend(group.exceptions)
    if failures:
        sys.exit(f"\nThe demo failed: {failures[0]}")
    print("\nThat was a store of the demo's own; it is gone again. To connect your assistant, paste one of these.\n")
    print(page(command))


if __name__ == "__main__":
    main()
