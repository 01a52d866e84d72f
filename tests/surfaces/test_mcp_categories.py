"""Categories through the real server: documents and logs from a model's side, and what lies on the disk afterwards."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from rawpipe import RawPipe
from realserver import Place, answer_of, ask, error_of, refused


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def file_of(place: Place, name: str) -> Path:
    return place.database.parent / "categories" / f"{name}.json"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_document_lives_from_its_first_write_to_its_return(place: Place, mode: str) -> None:
    async def session() -> None:
        async with place.client("--allow-write", mode=mode) as client:
            made = await ask(client, "memory_write", category="projects", data={"a": {"n": 1.5}, "日": None})
            assert (made["outcome"], made["kind"]) == ("created", "memory")
            read = await ask(client, "memory_read", category="projects")
            assert read["data"] == {"a": {"n": 1.5}, "日": None}
            assert read["notice"].startswith("Stored data")
            known = read["hash"]

            await ask(client, "memory_write", category="projects", data={"b": 2}, merge=True, expected_hash=known)
            assert "hash" in await refused(
                client, "memory_write", category="projects", data={"c": 3}, merge=True, expected_hash=known
            )
            delta = await ask(client, "memory_delta", category="projects", since_hash=known)
            assert (delta["status"], delta["changes"]["added"]) == ("changed", {"/b": 2})

            await ask(client, "memory_delete", category="projects", reason="done")
            assert "was deleted" in await refused(client, "memory_read", category="projects")
            history = await ask(client, "memory_history", category="projects")
            assert [version["action"] for version in history["versions"]] == ["deleted", "written", "written"]

    anyio.run(session)
    assert not file_of(place, "projects").exists()


def test_a_log_takes_entries_and_gives_the_newest_and_a_search_finds_them(place: Place) -> None:
    with place.raw("--allow-write") as pipe:
        for number in range(3):
            appended = answer_of(
                pipe.call("memory_append", {"category": "journal", "data": {"did": f"thing {number}"}})
            )
            assert (appended["id"], appended["total_entries"]) == (number, number + 1)
        read = answer_of(pipe.call("memory_read", {"category": "journal", "entries": 1}))
        assert [entry["data"] for entry in read["data"]["entries"]] == [{"did": "thing 2"}]
        [hit, *_] = answer_of(pipe.call("memory_search", {"query": "thing", "kinds": ["log"]}))["memories"]
        assert (hit["kind"], hit["category"], hit["key_path"]) == ("log", "journal", "did")
        assert "memory_append" in error_of(pipe.call("memory_write", {"category": "journal", "data": {}}))


def end_by_closing(pipe: RawPipe) -> None:
    pipe.close_stdin()


def end_by_signal(pipe: RawPipe) -> None:
    os.kill(pipe.process.pid, signal.SIGTERM)


@pytest.mark.parametrize("end", [end_by_closing, end_by_signal])
def test_the_file_of_a_log_is_whole_when_the_server_has_ended(place: Place, end: Any) -> None:
    with place.raw("--allow-write") as pipe:
        for number in range(5):
            answer_of(pipe.call("memory_append", {"category": "journal", "data": {"n": number}}))
        end(pipe)
        pipe.wait()
    log = json.loads(file_of(place, "journal").read_bytes())
    assert [entry["data"]["n"] for entry in log["entries"]] == [0, 1, 2, 3, 4]


def test_an_append_with_an_operation_id_is_done_once(place: Place) -> None:
    call = {"category": "journal", "data": {"did": "it"}, "operation_id": "one"}
    with place.raw("--allow-write") as pipe:
        first = answer_of(pipe.call("memory_append", call))
        again = answer_of(pipe.call("memory_append", call))
        assert again == first | {"repeated": True}
        assert "used before" in error_of(pipe.call("memory_append", call | {"data": {"did": "else"}}))


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        ("1e-5", b"0.00001"),
        ("1e16", b"1e+16"),
        ("-0", b"-0.0"),
        ("18446744073709551616", b"1.8446744073709552e+19"),
        ("9007199254740993", b"9007199254740993"),
        ("-9223372036854775808", b"-9223372036854775808"),
    ],
)
def test_a_number_reaches_the_file_as_the_format_says(place: Place, number: str, kept: bytes) -> None:
    call = (
        '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory_write","arguments":'
        '{"category":"numbers","data":{"n":' + number + "}}}}"
    )
    with place.raw("--allow-write") as pipe:
        pipe.send_line(call.encode())
        answer_of(pipe.next()["result"])
    assert file_of(place, "numbers").read_bytes() == b'{\n  "n": ' + kept + b"\n}"


@pytest.mark.parametrize("number", ["0.1234567890123456789", "1e999", "36893488147419103233", "9" * 500])
def test_a_number_that_cannot_be_kept_is_refused_and_nothing_is_stored(place: Place, number: str) -> None:
    call = (
        '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory_write","arguments":'
        '{"category":"numbers","data":{"n":' + number + "}}}}"
    )
    with place.raw("--allow-write") as pipe:
        pipe.send_line(call.encode())
        answer = pipe.next()
        assert "error" in answer or answer["result"]["isError"]
        assert answer_of(pipe.call("memory_list"))["total"] == 0


def test_a_document_too_long_for_an_answer_says_what_it_left_out(place: Place) -> None:
    data = {f"key{number}": "x" * 20_000 for number in range(10)}
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_write", {"category": "big", "data": data}))
        read = answer_of(pipe.call("memory_read", {"category": "big"}))
        assert read["truncated"] is True
        assert read["data"].keys() | set(read["omitted"]) == data.keys()
        left_out = read["omitted"][0]
        assert answer_of(pipe.call("memory_read", {"category": "big", "fields": left_out}))["data"] == {
            left_out: "x" * 20_000
        }


def test_without_permission_nothing_is_written_and_the_flag_is_named(place: Place) -> None:
    with place.raw() as pipe:
        for tool in ("memory_write", "memory_append", "memory_delete"):
            assert "--allow-write" in error_of(pipe.call(tool, {"category": "notes"}))
        assert answer_of(pipe.call("memory_list"))["total"] == 0


def test_the_access_list_names_the_rule_and_what_would_allow_it(place: Place) -> None:
    config = place.root / "config.toml"
    config.write_text('[acl]\ndevice_name = "laptop"\nadmin_devices = ["desk"]\ndevice_categories = ["laptop"]\n')
    env = {"MCP_MEMORY_CONFIG": str(config)}
    with place.raw("--allow-write", env=env) as pipe:
        line = error_of(pipe.call("memory_write", {"category": "projects", "data": {}}))
        assert "base_requires_admin" in line
        assert "admin_devices" in line
        assert answer_of(pipe.call("memory_write", {"category": "laptop", "data": {}}))["outcome"] == "created"
