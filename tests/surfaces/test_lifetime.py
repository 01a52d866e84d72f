"""The end of a server process, seen from outside: signals, ends of input and parents, over real processes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from rawpipe import HANDSHAKE, RawPipe, environment

SERVER: Final = [sys.executable, str(Path(__file__).with_name("echo_server.py"))]
SOON_SECONDS: Final = 3.0
"""The end takes about a second at most; what is measured is that nothing waits for the client or for a call."""

STATUSES: Final = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
LONG: Final = 600
LONG_ECHO: Final = (
    b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}\n'
) % (b"x" * 2**20)


@pytest.fixture(autouse=True)
def _hang_ups_reach_our_children() -> Iterator[None]:
    """Children inherit an ignored signal, and the tests may run under nohup."""
    before = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def started(*prefix: str) -> RawPipe:
    pipe = RawPipe([*prefix, *SERVER])
    pipe.initialize()
    return pipe


def shell(script: str) -> list[str]:
    """A prefix that runs the rest of the command as `"$@"` in `script`."""
    return ["/bin/sh", "-c", script, "sh"]


def begin_naps(pipe: RawPipe, *, seconds: float, number: int = 1) -> None:
    for _ in range(number):
        pipe.request("tools/call", {"name": "nap", "arguments": {"seconds": seconds}})
    # Calls start in the order they came in, so this one is answered when the naps have begun.
    request_id = pipe.request("tools/call", {"name": "echo", "arguments": {"text": "1"}})
    assert pipe.next()["id"] == request_id


def ends_soon_with(pipe: RawPipe, status: int) -> bool:
    ended = pipe.wait(timeout=SOON_SECONDS)
    assert "Traceback" not in pipe.errors.text, pipe.errors.text
    return ended == status


def test_an_idle_server_ends_with_its_input() -> None:
    with started() as pipe:
        pipe.close_stdin()
        assert ends_soon_with(pipe, 0)


def test_a_server_that_nobody_spoke_to_ends_with_its_input() -> None:
    with RawPipe(SERVER) as pipe:
        pipe.close_stdin()
        assert pipe.wait() == 0
        assert pipe.output.raw == b""
        assert "Traceback" not in pipe.errors.text


def test_a_server_with_running_calls_ends_with_its_input() -> None:
    with started() as pipe:
        begin_naps(pipe, seconds=LONG, number=3)
        pipe.close_stdin()
        assert ends_soon_with(pipe, 0)


@pytest.mark.parametrize(("number", "status"), STATUSES)
def test_one_signal_ends_an_idle_server(number: signal.Signals, status: int) -> None:
    with started() as pipe:
        pipe.signal(number)
        assert ends_soon_with(pipe, status)
        assert pipe.errors.text.splitlines() == ["stopping"]


@pytest.mark.parametrize(("number", "status"), STATUSES)
def test_one_signal_ends_a_server_under_load(number: signal.Signals, status: int) -> None:
    with started() as pipe:
        begin_naps(pipe, seconds=LONG, number=8)
        pipe.signal(number)
        assert ends_soon_with(pipe, status)
        assert "stopping" in pipe.errors.text


def test_a_signal_ends_a_server_whose_answer_nobody_reads() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(SERVER, bufsize=0, stdin=pipe, stdout=pipe, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HANDSHAKE + LONG_ECHO)
        # The answer to the handshake and the beginning of the long one; the rest of that does not fit into the pipe.
        while b'"long"' not in process.stdout.read(4096):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON_SECONDS) == 143


def test_a_short_call_may_finish_when_a_signal_comes() -> None:
    with started() as pipe:
        begin_naps(pipe, seconds=0.2)
        pipe.signal(signal.SIGTERM)
        assert ends_soon_with(pipe, 143)
        assert "awake" in pipe.errors.text


def test_a_second_signal_ends_the_process_at_once() -> None:
    with started() as pipe:
        begin_naps(pipe, seconds=LONG)
        pipe.request("tools/call", {"name": "begin_the_end"})
        wait_for_line(pipe, "stopping")
        pipe.signal(signal.SIGINT)
        assert ends_soon_with(pipe, 130)


def wait_for_line(pipe: RawPipe, line: str) -> None:
    read = pipe.errors.line(SOON_SECONDS)
    assert read is not None
    assert read.decode().strip() == line


def test_a_hang_up_that_is_ignored_at_the_start_stays_ignored() -> None:
    with started(*shell('trap "" HUP; exec "$@"')) as pipe:
        pipe.signal(signal.SIGHUP)
        # Longer than an end may take, so that the answer shows that there was none.
        assert pipe.call("nap", {"seconds": 1.5})["structuredContent"] == {"value": "awake"}
        pipe.signal(signal.SIGTERM)
        assert ends_soon_with(pipe, 143)


@pytest.mark.parametrize("naps", [0, 2])
def test_the_death_of_the_parent_ends_a_server_whose_input_stays_open(naps: int) -> None:
    with started(sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])") as pipe:
        begin_naps(pipe, seconds=LONG, number=naps)
        pipe.process.kill()
        pipe.process.wait()
        # We hold its input open; its output ends when it is gone, and it alone has that still open.
        pipe.output.wait_for_end(SOON_SECONDS)
        assert "Traceback" not in pipe.errors.text


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 2>&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_files_do_no_harm(closed: str) -> None:
    with RawPipe([*shell(f'exec "$@" {closed}'), *SERVER]) as pipe:
        pipe.close_stdin()
        assert pipe.wait() == 0
        assert pipe.errors.text == ("stopping\n" if "2" not in closed else "")


def test_no_file_gets_the_number_of_a_closed_standard_error() -> None:
    with started(*shell('exec "$@" 2>&-')) as pipe:
        assert pipe.call("lowest_free_descriptor")["structuredContent"]["value"] > 2
        for tool in ("warn", "noise", "echo"):
            assert pipe.call(tool)["isError"] is False
        pipe.signal(signal.SIGTERM)
        assert ends_soon_with(pipe, 143)


def test_a_failure_of_the_server_is_shown_and_ends_the_process() -> None:
    script = (
        "import anyio, functools, sys, threading, time\n"
        "from keepwell.surfaces.lifetime import serve_until_end\n"
        "async def serve(ending):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    raise LookupError('what went wrong')\n"
        "anyio.run(functools.partial(serve_until_end, serve, on_stop=lambda: None))\n"
    )
    with RawPipe([sys.executable, "-c", script]) as pipe:
        assert pipe.wait() == 1
        assert "LookupError: what went wrong" in pipe.errors.text
