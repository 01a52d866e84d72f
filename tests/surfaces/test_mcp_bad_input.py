"""Bad input on the real server: an error comes back that names what is wrong, and the next call works."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rawpipe import RawPipe
from realserver import Place, answer_of, error_of

from keepwell.operations import OPERATIONS
from keepwell.operations.table import Flag, Integer, Name, Object, Operation, Parameter, Text

TOOLS = [operation for operation in OPERATIONS if operation.tool]
GOOD: dict[str, Any] = {
    "text": "zebra",
    "evidence": [{"description": "seen"}],
    "id": 1,
    "memory_id": 1,
    "verdict": "useful",
    "query": "zebra",
    "category": "zebras",
    "data": {"stripes": 2},
    "since_hash": "0" * 64,
    "categories": ["zebras"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawPipe]:
    with Place(tmp_path_factory.mktemp("bad")).raw("--allow-write", "--tools", "all") as pipe:
        pipe.call("memory_add", {"text": "zebra", "evidence": GOOD["evidence"]})
        yield pipe


@pytest.fixture(autouse=True)
def _the_next_call_works(server: RawPipe) -> Iterator[None]:
    yield
    assert answer_of(server.call("memory_search", {"query": "zebra"}))["found"] == 1


RAW = {
    "broken JSON": (b'{"jsonrpc":"2.0","id":1,', -32700),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xff"}}', -32700),
    "NUL bytes": (b"\0\0\0", -32700),
    "a bare word": (b"hello", -32700),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
    "a key twice": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1,"x":2}}', -32600),
    "deep nesting": (b"[" * 100_000, -32600),
    "half a surrogate pair": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'  # noqa: ISC004
        b'"params":{"name":"memory_search","arguments":{"query":"\\ud83d"}}}',
        -32602,
    ),
    "arguments as a list": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":["x"]}}',
        -32602,
    ),
    "arguments as text": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":"{}"}}',
        -32602,
    ),
    "no tool name": (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}', -32602),
    "an unknown method": (b'{"jsonrpc":"2.0","id":1,"method":"memory/read"}', -32601),
    "a line of 17 MB": (b'{"x":"' + b"y" * (17 * 1024 * 1024) + b'"}', -32600),
}


@pytest.mark.parametrize("kind", RAW)
def test_a_line_that_is_no_good_request_is_answered_with_a_protocol_error(server: RawPipe, kind: str) -> None:
    line, code = RAW[kind]
    server.send_line(line)
    error = server.next()["error"]
    assert error["code"] == code
    assert "\n" not in error["message"]
    assert "pydantic" not in error["message"]


@pytest.mark.parametrize("arguments", [None, {}], ids=["no arguments member", "empty arguments"])
@pytest.mark.parametrize("operation", TOOLS, ids=lambda operation: operation.name)
def test_missing_arguments_are_named(server: RawPipe, operation: Operation, arguments: dict[str, Any] | None) -> None:
    params: dict[str, Any] = {"name": operation.tool} | ({} if arguments is None else {"arguments": arguments})
    result = server.answer("tools/call", params)["result"]
    needed = [parameter.name for parameter in operation.parameters if parameter.required]
    if not needed:
        assert answer_of(result) is not None
        return
    assert f"{needed[0]} is missing" in error_of(result)


WRONG: list[Any] = [None, True, 1.5, "", " ", "1", -1, 0, 2**53, [], {}, [1], {"x": 1}, "a\0b", '["a"]']
CASES = [
    pytest.param(operation, parameter, value, id=f"{operation.tool}-{parameter.name}-{value!r:.12}")
    for operation in TOOLS
    for parameter in operation.parameters
    for value in WRONG
]


def good(operation: Operation) -> dict[str, Any]:
    return {p.name: GOOD[p.name] for p in operation.parameters if p.required}


def is_fine(parameter: Parameter, value: Any) -> bool:
    """Text parameters take any text: `1` in quotes, and JSON in quotes where no list is meant."""
    match parameter.kind:
        case Text():
            return value in ("1", '["a"]') and parameter.name not in (
                "expected_hash",
                "updated_after",
                "updated_before",
            )
        case Name():
            return bool(value == "1")
        case Flag():
            return value is True
        case Integer():
            return bool(value == parameter.kind.minimum == 0)
        case Object():
            return isinstance(value, dict)
        case _:
            return False


@pytest.mark.parametrize(("operation", "parameter", "value"), CASES)
def test_a_wrong_value_is_refused_naming_its_parameter(
    server: RawPipe, operation: Operation, parameter: Parameter, value: Any
) -> None:
    if is_fine(parameter, value):
        return
    line = error_of(server.call(operation.name, good(operation) | {parameter.name: value}))
    assert line.startswith("invalid: ")
    assert parameter.name in line


@pytest.mark.parametrize("operation", TOOLS, ids=lambda operation: operation.name)
def test_an_unknown_property_is_refused(server: RawPipe, operation: Operation) -> None:
    line = error_of(server.call(operation.name, good(operation) | {"workspace": "/etc"}))
    assert "'workspace' is not a parameter" in line


def test_evidence_as_text_is_refused_with_an_example(server: RawPipe) -> None:
    line = error_of(server.call("memory_add", {"text": "x", "evidence": '[{"description": "x"}]'}))
    assert '[{"description": "…"}]' in line


@pytest.mark.parametrize("size", [2_100, 20_000, 5_000_000])
def test_text_over_the_limit_is_refused_naming_the_limit_in_bytes_and_nothing_is_cut(
    server: RawPipe, size: int
) -> None:
    line = error_of(server.call("memory_add", {"text": "x" * size, "evidence": GOOD["evidence"]}))
    assert f"text is {size:,} bytes in UTF-8; the limit is 2,000 bytes" in line


def test_the_longest_text_comes_back_to_the_byte(server: RawPipe) -> None:
    text = "é日😀" * 222 + "\r\n"
    assert len(text.encode()) == 2_000
    added = answer_of(server.call("memory_add", {"text": text, "evidence": GOOD["evidence"]}))
    assert answer_of(server.call("memory_get", {"id": added["id"]}))["memory"]["text"] == text


def test_a_request_with_windows_line_ends_is_answered(server: RawPipe) -> None:
    server.send_bytes(json.dumps({"jsonrpc": "2.0", "id": "crlf", "method": "ping"}).encode() + b"\r\n")
    assert server.next() == {"jsonrpc": "2.0", "id": "crlf", "result": {}}
