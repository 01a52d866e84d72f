"""The life of the real server: it ends when it should, at once, and leaves a whole store; many of them share one."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest
from rawpipe import HANDSHAKE, RawPipe
from realserver import EVIDENCE, Place, answer_of

from keepwell.store.local.engine import LocalStore
from keepwell.wiring import real_world, uid_maker

GONE_WITHIN_SECONDS = 5
"""A bound for liveness on a busy machine; the server's own is under a second."""


def lesson(text: str) -> dict[str, Any]:
    return {"text": text, "evidence": EVIDENCE}


def open_store(place: Place) -> LocalStore:
    world = real_world()
    return LocalStore(place.database, device="test", world=world, new_uid=uid_maker(world))


def all_texts(place: Place) -> list[str]:
    store = open_store(place)
    try:
        assert store.check() == ()
        with store.reading() as reader:
            numbers = range(1, reader.counts().lessons + 1)
            return [found.text for number in numbers if (found := reader.lesson(number))]
    finally:
        store.close()


def hold_the_lock(place: Place) -> apsw.Connection:
    other = apsw.Connection(str(place.database))
    other.execute("BEGIN IMMEDIATE")
    return other


SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "waiting for the lock"])
def test_one_signal_ends_the_server_with_the_usual_status(place: Place, number: signal.Signals, busy: bool) -> None:
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_add", lesson("kept")))
        if busy:
            other = hold_the_lock(place)
            pipe.request("tools/call", {"name": "memory_add", "arguments": lesson("never acknowledged")})
            time.sleep(0.2)
        pipe.signal(number)
        assert pipe.wait(timeout=GONE_WITHIN_SECONDS) == SIGNALS[number]
        assert "Traceback" not in pipe.errors.text
    if busy:
        other.close()
    assert all_texts(place) == ["kept"]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "waiting for the lock"])
def test_the_end_of_the_input_ends_the_server(place: Place, busy: bool) -> None:
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_add", lesson("kept")))
        if busy:
            other = hold_the_lock(place)
            pipe.request("tools/call", {"name": "memory_add", "arguments": lesson("never acknowledged")})
        pipe.close_stdin()
        assert pipe.wait(timeout=GONE_WITHIN_SECONDS) == 0
        assert "Traceback" not in pipe.errors.text
    if busy:
        other.close()
    assert all_texts(place) == ["kept"]


def test_calls_before_the_end_of_the_input_are_answered_and_kept(place: Place) -> None:
    call = (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory_add","arguments":'
        b'{"text":"lesson %d","evidence":[{"description":"seen"}]}}}\n'
    )
    ran = subprocess.run(
        place.command("--allow-write"),
        input=HANDSHAKE + b"".join(call % (number, number) for number in range(20)),
        capture_output=True,
        env=place.environment(),
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stdout.count(b'"outcome":"added"') == 20
    assert sorted(all_texts(place)) == sorted(f"lesson {number}" for number in range(20))


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.004, 0.008, 0.016])
def test_a_write_in_flight_when_the_server_is_killed_is_whole_or_absent(place: Place, delay: float) -> None:
    with place.raw("--allow-write") as pipe:
        for number in range(200):
            pipe.request("tools/call", {"name": "memory_add", "arguments": lesson(f"lesson {number}")})
        for _ in range(5):
            answer_of(pipe.next()["result"])
        time.sleep(delay)
        pipe.process.kill()
        pipe.wait()
        answers = [line for line in pipe.output.raw.split(b"\n")[:-1] if b'"outcome":"added"' in line]
    kept = all_texts(place)
    assert len(kept) >= len(answers) >= 5
    assert len(kept) == len(set(kept))


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_no_orphan_stays_when_the_parent_dies_and_the_pipe_stays_open(place: Place) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as input_end, os.fdopen(writing, "wb", buffering=0) as held_open:
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, *place.command("--allow-write")],
            stdin=input_end,
            stdout=subprocess.PIPE,
            env=place.environment(),
        )
        assert parent.stdout
        child = int(parent.stdout.readline())
        held_open.write(HANDSHAKE)
        assert b"serverInfo" in parent.stdout.readline()
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + GONE_WITHIN_SECONDS
        while alive(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not alive(child)
        parent.stdout.close()


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0]
    except FileNotFoundError:
        return False


def test_while_another_process_writes_reads_and_pings_are_answered(place: Place) -> None:
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_add", lesson("zebra")))
        other = hold_the_lock(place)
        assert pipe.answer("ping")["result"] == {}
        found = answer_of(pipe.call("memory_search", {"query": "zebra"}))
        assert (found["found"], "request_id" in found) == (1, False)
        assert "not counted" in found["warnings"][0]
        other.execute("ROLLBACK")
        assert answer_of(pipe.call("memory_search", {"query": "zebra"}))["request_id"] == 1


def test_every_line_on_standard_output_is_a_message_even_with_all_logs_on(place: Place) -> None:
    env = {"KEEPWELL_LOG_LEVEL": "debug", "PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"}
    with place.raw("--allow-write", env=env) as pipe:
        answer_of(pipe.call("memory_add", lesson("zebra")))
        for arguments in ({}, {"id": 99}, {"id": "x"}):
            pipe.call("memory_get", arguments)
        pipe.send_line(b"not json")
        pipe.next()
        pipe.close_stdin()
        assert pipe.wait() == 0
        assert "not_found" in pipe.errors.text
        assert all(line.startswith(b'{"jsonrpc":"2.0"') for line in pipe.output.raw.splitlines())


FAULTY = textwrap.dedent(
    """
    import sys
    from keepwell.store.local.reader import LocalReader
    def fail(*_arguments):
        print("stray output")
        raise RuntimeError("secret detail of an internal fault")
    LocalReader.search = fail
    from keepwell.surfaces.cli import run
    sys.exit(run(sys.argv[1:]))
    """
)


def test_an_internal_fault_is_told_without_its_details_and_the_next_call_works(place: Place) -> None:
    _, _, _, *rest = place.command("--allow-write")
    with RawPipe([sys.executable, "-c", FAULTY, *rest]) as pipe:
        pipe.initialize()
        answer_of(pipe.call("memory_add", lesson("zebra")))
        result = pipe.call("memory_search", {"query": "zebra"})
        assert result["isError"]
        assert result["content"][0]["text"].startswith("internal: ")
        assert b"secret detail" not in pipe.output.raw
        assert b"stray output" not in pipe.output.raw
        assert answer_of(pipe.call("memory_get", {"id": 1}))["memory"]["text"] == "zebra"
        pipe.close_stdin()
        pipe.wait()
        assert "secret detail" in pipe.errors.text


def write_many(place: Place, name: str, count: int, outcomes: list[str], errors: list[str]) -> None:
    with place.raw("--allow-write") as pipe:
        for number in range(count):
            pipe.request("tools/call", {"name": "memory_add", "arguments": lesson(f"{name} lesson {number}")})
        for _ in range(count):
            result = pipe.next(timeout=120)["result"]
            if result.get("isError"):
                errors.append(result["content"][0]["text"])
            else:
                outcomes.append(result["structuredContent"]["outcome"])


def test_eight_servers_and_an_import_write_at_once_and_nothing_is_lost(place: Place) -> None:
    file = place.root / "lessons.jsonl"
    line = '{"text": "imported lesson %d", "evidence": [{"description": "seen"}]}'
    file.write_text("\n".join(line % number for number in range(200)))
    outcomes: list[str] = []
    errors: list[str] = []
    servers = [
        threading.Thread(target=write_many, args=(place, f"server {number}", 250, outcomes, errors))
        for number in range(8)
    ]
    for server in servers:
        server.start()
    command = [*place.command(), "import", str(file), "--json"]
    command.remove("serve")
    ran = subprocess.run(command, env=place.environment(), capture_output=True, timeout=150, check=False)
    for server in servers:
        server.join()
    assert errors == []
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b'"added":200' in ran.stdout
    assert outcomes == ["added"] * 2_000
    kept = all_texts(place)
    assert len(kept) == len(set(kept)) == 2_200


def test_twenty_reads_in_flight_on_one_connection_are_all_answered_while_another_process_writes(place: Place) -> None:
    outcomes: list[str] = []
    errors: list[str] = []
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_add", lesson("zebra")))
        writer = threading.Thread(target=write_many, args=(place, "other", 100, outcomes, errors))
        writer.start()
        for number in range(20):
            tool, arguments = ("memory_get", {"id": 1}) if number % 2 else ("memory_search", {"query": "zebra"})
            pipe.request("tools/call", {"name": tool, "arguments": arguments})
        requests = [answer_of(pipe.next()["result"])["request_id"] for _ in range(20)]
        writer.join()
    assert sorted(requests) == list(range(1, 21))
    assert (errors, len(outcomes)) == ([], 100)
