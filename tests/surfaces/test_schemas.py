"""What `tools/list` shows: committed snapshots, and what strict clients demand of every schema node."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from keepwell.operations import DEFAULT_TOOLSETS, OPERATIONS, TOOLSETS
from keepwell.surfaces.mcp import describe

SNAPSHOTS: Final = Path(__file__).parents[1] / "snapshots" / "tools"
TOOLS: Final = {
    operation.tool: describe(operation).model_dump(mode="json", by_alias=True, exclude_none=True)
    for operation in OPERATIONS
    if operation.tool
}
DEFAULT_TOKENS: Final = 2_500
WHOLE_TOKENS: Final = 3_500
READ_ONLY: Final = {
    "memory_read",
    "memory_list",
    "memory_history",
    "memory_delta",
    "memory_context",
    "memory_status",
}
"""Search and get count a delivery, so they are not among these."""

DESTRUCTIVE: Final = {"memory_supersede", "memory_archive", "memory_write", "memory_delete", "memory_compact"}
REFUSED: Final = {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "format", "if", "patternProperties"}


def as_text(tool: dict[str, Any]) -> str:
    return json.dumps(tool, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_what_its_snapshot_says(name: str, request: pytest.FixtureRequest) -> None:
    file = SNAPSHOTS / f"{name}.json"
    if request.config.getoption("--write-snapshots"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(as_text(TOOLS[name]), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == as_text(TOOLS[name]), "run pytest with --write-snapshots and look"


def test_there_is_no_snapshot_of_a_tool_that_is_gone() -> None:
    assert {file.stem for file in SNAPSHOTS.glob("*.json")} == set(TOOLS)


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    if "items" in schema:
        yield from nodes(schema["items"])


@pytest.mark.parametrize("side", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_one_that_every_client_takes(name: str, side: str) -> None:
    schema = TOOLS[name][side]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    for node in nodes(schema):
        assert isinstance(node["type"], str)
        assert not REFUSED & set(node)
        if side == "inputSchema" and node["type"] == "object" and node is not schema["properties"].get("data"):
            assert node["additionalProperties"] is False
        if side == "inputSchema" and "default" in node:
            jsonschema.validate(node["default"], node)


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_has_a_short_name_a_purpose_and_honest_hints(name: str) -> None:
    tool = TOOLS[name]
    assert re.fullmatch(r"[a-z_]{1,24}", name)
    assert 40 <= len(tool["description"]) <= 1_000
    hints = tool["annotations"]
    assert hints["openWorldHint"] is False
    # what is left out is what the protocol assumes: it writes, destructively
    assert hints.get("readOnlyHint", False) is (name in READ_ONLY)
    if name not in READ_ONLY:
        assert hints.get("destructiveHint", True) is (name in DESTRUCTIVE)


def test_every_example_is_one_that_the_schema_takes() -> None:
    for operation in OPERATIONS:
        for example in operation.examples:
            jsonschema.validate(example.arguments, TOOLS[operation.name]["inputSchema"])


@pytest.mark.parametrize(
    ("toolsets", "budget"), [(DEFAULT_TOOLSETS, DEFAULT_TOKENS), (TOOLSETS, WHOLE_TOKENS)], ids=["default", "all"]
)
def test_the_list_of_tools_costs_less_than_its_budget(toolsets: tuple[str, ...], budget: int) -> None:
    listed = [TOOLS[operation.tool] for operation in OPERATIONS if operation.tool and operation.toolset in toolsets]
    size = len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode())
    sys.stdout.write(f"tools/list: {size} bytes, {size // 4} tokens\n")
    assert size // 4 <= budget
