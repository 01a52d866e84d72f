"""The demonstration: a real MCP client, a real server over stdio, a store of its own; what happens in plain text."""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from client_configuration import blocks
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

TEXT = "Run the integration tests with `make check`; plain pytest skips them."
BETTER = "Run the integration tests with `just check`; plain pytest skips them."


async def show(client: Client, heading: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool, print what was asked and what came back, and give the answer; end the demo if it failed."""
    print(f"\n{heading}")
    print(f"  > {tool} {json.dumps(arguments, ensure_ascii=False)}")
    result = await client.call_tool(tool, arguments)
    answer = result.structured_content
    if result.is_error or not isinstance(answer, dict):
        sys.exit(f"  failed: {result.content}")
    return answer


def show_memories(answer: dict[str, Any]) -> None:
    """Print the lessons that a search found."""
    for memory in answer["memories"]:
        counts = memory["statistics"]
        print(f"  < lesson {memory['id']}: {memory['text']}")
        print(f"    because: {memory['evidence'][0]['description']}")
        print(f"    delivered {counts['retrieval_count']} times before, reported useful {counts['useful_count']} times")
    if not answer["memories"]:
        print("  < nothing found")


async def session(client: Client) -> None:
    """What an assistant would do, step by step."""
    tools = await client.list_tools()
    print(f"Connected. Tools: {', '.join(tool.name for tool in tools.tools)}")

    evidence = [{"description": "Saw 41 tests skipped by plain pytest.", "source_uri": "Makefile"}]
    added = await show(
        client, "1. It learned something and saves it.", "memory_add", {"text": TEXT, "evidence": evidence}
    )
    print(f"  < saved as lesson {added['id']} of project {added['project']}")

    question = {"query": "how do I run integration tests?"}
    show_memories(await show(client, "2. A later session asks.", "memory_search", question))

    report = {"memory_id": added["id"], "verdict": "useful", "reason": "Ran the right command at once."}
    answer = await show(client, "3. It helped, so it says so.", "memory_feedback", report)
    print(f"  < {answer['outcome']}")

    evidence = [{"description": "The Makefile was replaced by a justfile."}]
    change = {"id": added["id"], "text": BETTER, "evidence": evidence, "reason": "make is gone"}
    replaced = await show(client, "4. The command changed: the lesson is replaced.", "memory_supersede", change)
    print(f"  < lesson {replaced['id']} replaces lesson {replaced['supersedes_id']}")

    show_memories(await show(client, "5. Search gives the new lesson only.", "memory_search", question))

    old = await show(client, "6. The old one keeps its history.", "memory_get", {"id": added["id"]})
    for event in reversed(old["events"]):
        print(f"  < {event['created_at']}  {event['action']}")


async def demonstrate(command: str) -> None:
    """Run the session against a fresh store and a fresh project."""
    with tempfile.TemporaryDirectory(prefix="keepwell-demo-") as folder:
        project = Path(folder) / "my-project"
        project.mkdir()
        store = ["--db", str(Path(folder) / "store" / "memory.db"), "--workspace", str(project)]
        server = StdioServerParameters(command=command, args=["serve", *store, "--client", "demo", "--allow-write"])
        print("Starting the server as an MCP client does:")
        print(f"  {command} {' '.join(server.args)}")
        async with Client(stdio_client(server), mode="auto") as client:
            await session(client)


def main() -> None:
    """Show keepwell at work, then how to connect it."""
    command = shutil.which("keepwell", path=str(Path(sys.executable).parent))
    if command is None:
        sys.exit("keepwell is not installed beside this Python; run scripts/demo.")
    anyio.run(demonstrate, command)
    print("\nThe demo's store is gone again. To connect your assistant to a store of its own, paste one of these.")
    for block in blocks(command):
        print(f"\n--- {block.client}: {block.place}\n{block.text}")


if __name__ == "__main__":
    main()
