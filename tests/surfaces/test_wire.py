"""The stdio transport, over real pipes to a real process."""

import json
import os
import random
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent
from rawpipe import HANDSHAKE, RawPipe, environment

SERVER: Final = [sys.executable, str(Path(__file__).with_name("echo_server.py"))]
SOUP: Final = "記憶 🐘 ✓ Grüße \u2028 \u0085 \x7f \ufeff"
DEEP: Final = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


def started(*options: str, env: dict[str, str] | None = None) -> RawPipe:
    pipe = RawPipe([*SERVER, *options], env=env)
    pipe.initialize()
    return pipe


@pytest.fixture(scope="module")
def server() -> Iterator[RawPipe]:
    """One process for all cases, as none of them may harm the next."""
    with started() as pipe:
        yield pipe


class Case(NamedTuple):
    line: bytes
    code: int
    words: str
    id: object = None


def echo(text: str, *, head: str = '"jsonrpc":"2.0","id":"q"') -> bytes:
    """A call of the echo tool; `text` is the JSON of its argument."""
    return f'{{{head},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{text}}}}}}}'.encode()


REFUSED: Final = {
    "broken JSON": Case(b'{"jsonrpc":"2.0","id":1,', -32700, "not JSON"),
    "text after the object": Case(b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700, "not JSON"),
    "a byte-order mark": Case(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700, "not JSON"),
    "a raw control character": Case(echo('"\x01"'), -32700, "not JSON"),
    "invalid UTF-8": Case(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, "not UTF-8: byte 0xff at position 34"),
    "half a pair in UTF-8": Case(b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', -32700, "not UTF-8"),
    "a raw NUL": Case(b"\x00", -32700, "not JSON"),
    "NaN": Case(echo("NaN"), -32700, "NaN", "q"),
    "Infinity": Case(echo("-Infinity"), -32700, "-Infinity", "q"),
    "NaN in a notification": Case(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":NaN}}', -32700, "NaN"),
    "too large a double": Case(echo("1e999"), -32602, "1e999", "q"),
    "more digits than a double holds": Case(echo("0.12345678901234567891"), -32602, "cannot be kept exactly", "q"),
    "too long an integer": Case(echo("1" * 5000), -32600, "5000 digits", "q"),
    "too deep to read": Case(DEEP, -32600, "deeper than 200"),
    "too deep to answer": Case(echo("[" * 200 + "]" * 200), -32600, "deeper than 200", "q"),
    "a batch": Case(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, "one message per line"),
    "an empty batch": Case(b"[]", -32600, "Batches are not supported"),
    "a number": Case(b"1", -32600, "must be a JSON object"),
    "a string": Case(b'"ping"', -32600, "must be a JSON object"),
    "null": Case(b"null", -32600, "must be a JSON object"),
    "an empty object": Case(b"{}", -32600, "jsonrpc"),
    "no jsonrpc": Case(b'{"id":3,"method":"ping"}', -32600, "jsonrpc", 3),
    "another jsonrpc": Case(b'{"jsonrpc":"1.0","id":"x","method":"ping"}', -32600, "jsonrpc", "x"),
    "no method": Case(b'{"jsonrpc":"2.0","id":4}', -32600, "method is missing", 4),
    "a method that is a number": Case(b'{"jsonrpc":"2.0","id":4,"method":1}', -32600, "method", 4),
    "such a method and no id": Case(b'{"jsonrpc":"2.0","method":1}', -32600, "method"),
    "a bool as id": Case(b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, "id must be"),
    "a float as id": Case(b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, "id must be"),
    "an object as id": Case(b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, "id must be"),
    "null as id": Case(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, "id must be"),
    "params that are an array": Case(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}', -32600, "params", 5),
    "params that are a string": Case(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"a"}', -32600, "params", 5),
    "a method and a result": Case(b'{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}', -32600, "not both", 5),
    "a result and an error": Case(b'{"jsonrpc":"2.0","id":5,"result":{},"error":{}}', -32600, "not both"),
    "a result that is a number": Case(b'{"jsonrpc":"2.0","id":5,"result":1}', -32600, "result"),
    "a response without an id": Case(b'{"jsonrpc":"2.0","result":{}}', -32600, "id must be"),
    "an error that is no error": Case(b'{"jsonrpc":"2.0","id":5,"error":{}}', -32600, "no JSON-RPC request"),
    "a repeated key at the top": Case(b'{"jsonrpc":"2.0","id":6,"method":"a","method":"b"}', -32600, '"method"', 6),
    "a repeated key within": Case(echo('{"a":1,"a":1}'), -32600, '"a"', "q"),
    "a repeated id": Case(b'{"jsonrpc":"2.0","id":6,"id":7,"method":"a"}', -32600, '"id"'),
    "half a pair in an argument": Case(echo('"\\ud83d"'), -32602, "params.arguments.text holds U+D83D", "q"),
    "half a pair in a list": Case(echo('["\\ud83d\\ude00","\\udE00"]'), -32602, "arguments.text[1] holds U+DE00", "q"),
    "half a pair in a key": Case(echo('{"\\ud83d":1}'), -32602, 'arguments.text["\\ud83d"] holds U+D83D', "q"),
    "half a pair after a backslash": Case(echo('"\\\\ud83d\\ude00"'), -32602, "holds U+DE00", "q"),
    "half a pair in the method": Case(b'{"jsonrpc":"2.0","id":8,"method":"\\udfff"}', -32602, "method holds U+DFFF", 8),
    "half a pair in the id": Case(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32602, "id holds U+D800"),
}

UNANSWERED: Final = {
    "a blank line": b"",
    "a blank line with CR": b"\r",
    "a notification with bad params": b'{"jsonrpc":"2.0","method":"notifications/x","params":1}',
    "a notification with a repeated key": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}',
    "a notification with half a pair": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\\ud800"}}',
    "a notification in another version": b'{"jsonrpc":"1.0","method":"notifications/x"}',
    "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/x"}',
    "a response to nothing": b'{"jsonrpc":"2.0","id":77,"result":{}}',
    "an error to nothing": b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
}


def still_answers(pipe: RawPipe) -> bool:
    return bool(pipe.call("echo", {"text": SOUP})["structuredContent"] == {"value": SOUP})


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_bad_line_is_answered_with_its_fault_and_the_next_call_works(server: RawPipe, case: Case) -> None:
    server.send_line(case.line)
    answer = server.next()
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", case.id, case.code)
    assert case.words in answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]
    assert len(answer["error"]["message"]) < 300
    assert still_answers(server)


@pytest.mark.parametrize("line", UNANSWERED.values(), ids=UNANSWERED)
def test_what_asks_nothing_gets_no_answer_and_the_next_call_works(server: RawPipe, line: bytes) -> None:
    server.send_line(line)
    assert still_answers(server)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (json.dumps(SOUP), SOUP),
        (json.dumps(SOUP, ensure_ascii=False), SOUP),
        ('"a\\u0000b"', "a\0b"),
        ('"\\\\ud800"', "\\ud800"),
        ("9007199254740993", 9007199254740993),
        ("-9223372036854775809", -9223372036854775809),
        ("1" * 640, int("1" * 640)),
        ("[" * 190 + "]" * 190, None),
        ("[" + "[]," * 300 + "1]", None),
        ('{"":{"a b":[null,true,1.5]}}', {"": {"a b": [None, True, 1.5]}}),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "backslashreplace").decode(),
)
def test_a_value_comes_back_as_it_was_sent(server: RawPipe, written: str, value: object) -> None:
    server.send_line(echo(written))
    answer = server.next()
    assert answer["id"] == "q"
    assert answer["result"]["structuredContent"]["value"] == (json.loads(written) if value is None else value)


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":9,"method":"ping"}', b' {"jsonrpc":"2.0","id":9,"method":"ping","params":null}\t']
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"\n\r\n \n"])
def test_line_ends_blank_lines_and_absent_params_are_tolerated(server: RawPipe, line: bytes, end: bytes) -> None:
    server.send_bytes(line + end)
    assert server.next() == {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert still_answers(server)


def test_one_byte_at_a_time_makes_the_same_message(server: RawPipe) -> None:
    for byte in echo('"🐘"') + b"\n":
        server.send_bytes(bytes([byte]))
    assert server.next()["result"]["structuredContent"] == {"value": "🐘"}


def test_five_megabytes_pass_in_one_line(server: RawPipe) -> None:
    text = "記憶🐘\n" * 400_000
    assert server.call("echo", {"text": text})["structuredContent"]["value"] == text


def test_an_answer_that_is_no_json_is_an_error_and_the_next_call_works(server: RawPipe) -> None:
    assert server.answer("tools/call", {"name": "half"})["error"]["code"] == -32603
    assert still_answers(server)


def test_a_line_at_the_limit_passes_and_one_byte_more_is_refused() -> None:
    with started("--max-line-bytes", "1000") as pipe:
        for size, passes in ((1000, True), (1001, False), (300_000, False), (1000, True)):
            pipe.send_line(echo('"' + "x" * (size - len(echo('""'))) + '"'))
            answer = pipe.next()
            assert ("result" in answer) is passes
            if not passes:
                assert (answer["id"], answer["error"]["code"]) == (None, -32600)
                assert "1000 bytes" in answer["error"]["message"]
        assert still_answers(pipe)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
def test_a_line_without_an_end_takes_no_memory() -> None:
    with started("--max-line-bytes", "100000") as pipe:
        before = peak_kilobytes(pipe)
        for _ in range(128):
            pipe.send_bytes(b"x" * 2**20)
        pipe.send_bytes(b"\n")
        assert pipe.next()["error"]["code"] == -32600
        assert peak_kilobytes(pipe) - before < 32 * 1024


def peak_kilobytes(pipe: RawPipe) -> int:
    status = Path(f"/proc/{pipe.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(min_value=0), cuts=st.integers(min_value=1, max_value=6))
def test_no_mangled_line_harms_the_next_call(server: RawPipe, seed: int, cuts: int) -> None:
    server.send_line(mangled(echo('{"a":[1,"\\ud83d\\ude00",{"b":-1.5e3}]}'), random.Random(seed), cuts))
    request_id = server.request("tools/call", {"name": "echo", "arguments": {"text": seed % 1000}})
    while (answer := server.next())["id"] != request_id:
        assert ("error" in answer) or isinstance(answer["id"], str)
    assert answer["result"]["structuredContent"] == {"value": seed % 1000}


def mangled(line: bytes, chance: random.Random, cuts: int) -> bytes:
    changed = bytearray(line)
    for _ in range(cuts):
        place = chance.randrange(len(changed))
        changed[place : place + chance.randrange(3)] = chance.choice(
            [b"", b'"', b"\\", b"{", b"\xf0", b"0", b"\\ud800"]
        )
    return bytes(changed).replace(b"\n", b"")


def test_nothing_but_messages_reaches_the_client() -> None:
    with started(env={"PYTHONUNBUFFERED": ""}) as pipe:
        pipe.send_line(b"{")
        assert pipe.next()["error"]["code"] == -32700
        assert pipe.call("noise")["structuredContent"] == {"value": "made"}
        pipe.close_stdin()
        assert pipe.wait() == 0
        assert [json.loads(line)["jsonrpc"] for line in pipe.output.raw.splitlines()] == ["2.0"] * 3
        strays = ["a stray print", "a stray print that stays in the buffer", "a stray write", "a stray child"]
        assert all(stray in pipe.errors.text.splitlines() for stray in strays)


def test_a_child_process_finds_no_messages_on_its_input() -> None:
    with started() as pipe:
        assert pipe.call("child_reads_nothing")["structuredContent"] == {"value": "0"}
        assert still_answers(pipe)


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "cp936:strict", "PYTHONUTF8": "0"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda env: " ".join(env.values()),
)
def test_no_code_page_touches_the_text(env: dict[str, str]) -> None:
    with started(env=env) as pipe:
        pipe.send_line(echo(json.dumps(SOUP, ensure_ascii=False)))
        assert pipe.next()["result"]["structuredContent"] == {"value": SOUP}
        assert SOUP.encode() in pipe.output.raw
        assert b"\r" not in pipe.output.raw


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_clients_of_the_sdk_are_served(mode: str) -> None:
    async def talk() -> tuple[list[str], Any]:
        command = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=environment())
        async with Client(command, mode=mode) as client:
            tools = await client.list_tools()
            result = await client.call_tool("echo", {"text": SOUP})
        return [tool.name for tool in tools.tools], result.content[0]

    names, content = anyio.run(talk)
    assert "echo" in names
    assert isinstance(content, TextContent)
    assert content.text == SOUP


def test_calls_sent_before_the_end_of_the_input_are_answered() -> None:
    with started() as pipe:
        ids = [pipe.request("tools/call", {"name": "echo", "arguments": {"text": place}}) for place in range(200)]
        pipe.close_stdin()
        assert pipe.wait() == 0
        lines = [json.loads(line) for line in pipe.output.raw.splitlines()[1:]]
        assert {line["id"]: line["result"]["structuredContent"]["value"] for line in lines} == dict(
            zip(ids, range(200), strict=True)
        )


def test_a_last_line_without_an_end_is_answered() -> None:
    with started() as pipe:
        pipe.send_bytes(echo("1"))
        pipe.close_stdin()
        assert pipe.next()["id"] == "q"
        assert pipe.wait() == 0


def test_a_running_call_is_answered_after_the_end_of_the_input() -> None:
    with started("--eof-grace", "600") as pipe:
        request_id = pipe.request("tools/call", {"name": "nap", "arguments": {"seconds": 1}})
        pipe.close_stdin()
        assert pipe.next()["id"] == request_id
        assert pipe.wait() == 0


def test_a_cancelled_call_is_not_waited_for() -> None:
    with started("--eof-grace", "600") as pipe:
        request_id = pipe.request("tools/call", {"name": "nap", "arguments": {"seconds": 600}})
        pipe.notify("notifications/cancelled", {"requestId": request_id})
        pipe.close_stdin()
        assert pipe.wait() == 0


def test_input_that_was_read_before_comes_first() -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    with RawPipe([*SERVER, "--read-first", "10"]) as pipe:
        pipe.send_bytes(ping)
        assert pipe.next() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_pipes_in_non_blocking_mode_work() -> None:
    launch = "import os, sys; os.set_blocking(0, False); os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])"
    with RawPipe([sys.executable, "-c", launch, *SERVER]) as pipe:
        pipe.initialize()
        text = "x" * 1_000_000
        assert pipe.call("echo", {"text": text})["structuredContent"]["value"] == text


def test_a_client_that_reads_no_more_ends_the_server_without_a_traceback() -> None:
    with closed_reader() as process:
        assert process.stdin is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def closed_reader() -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    process = subprocess.Popen(SERVER, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
    assert process.stdout is not None
    process.stdout.close()
    return process


def test_a_client_that_never_reads_is_not_read_without_bounds() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(SERVER, bufsize=0, stdin=pipe, stdout=pipe, env=environment()) as process:
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.write(HANDSHAKE)
        try:
            assert accepted_bytes(process.stdin.fileno(), echo('"' + "x" * 2**20 + '"') + b"\n", most=2**28) < 2**27
        finally:
            process.kill()


def accepted_bytes(descriptor: int, line: bytes, *, most: int) -> int:
    """How much of `line`, again and again, is taken until nothing more is for some seconds."""
    taken = 0
    while taken < most and select.select([], [descriptor], [], 5)[1]:
        taken += os.write(descriptor, line[taken % len(line) :])
    return taken


def test_answers_to_a_slow_reader_stay_whole_and_in_order() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(SERVER, bufsize=0, stdin=pipe, stdout=pipe, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for place in range(40):
            process.stdin.write(f'{{"jsonrpc":"2.0","id":{place},"method":"ping"}}\n{{\n'.encode())
        lines = [json.loads(process.stdout.readline()) for _ in range(80)]
        process.stdin.close()
        assert sorted(line["id"] for line in lines if "result" in line) == list(range(40))
        assert sum(line.get("error", {}).get("code") == -32700 for line in lines) == 40
        assert process.wait(30) == 0
