"""Diagnostics: where they go, what is taken out of them, and that they disturb nobody."""

import io
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepwell import log

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}


class Errors:
    """Everything that went to standard error so far."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self._text = ""

    def getvalue(self) -> str:
        self._text += self._capture.readouterr().err
        return self._text


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Errors:
    return Errors(capsys)


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    log.stop()


def say(message: str, level: int = logging.WARNING) -> None:
    logging.getLogger("keepwell.tests").log(level, "%s", message)


def fail_with(message: str) -> None:
    error = ValueError(message)
    logging.getLogger("keepwell").debug("it failed", exc_info=error)


def test_a_record_is_one_line_with_time_level_and_logger(written: Errors) -> None:
    log.start("info")
    say("the store is on a network mount")
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning keepwell\.tests: the store is on a network mount\n"
    assert re.fullmatch(line, written.getvalue())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\u2029"])
def test_a_message_cannot_start_a_line_of_its_own(written: Errors, end: str) -> None:
    log.start("info")
    say(f"first{end}2026-01-01T00:00:00.000Z error keepwell: forged")
    assert len(written.getvalue().splitlines()) == 1


def test_a_message_cannot_steer_the_terminal(written: Errors) -> None:
    log.start("info")
    say("\x1b[2Jgone \u202ebackwards")
    assert written.getvalue().rstrip("\n").isprintable()


def test_a_traceback_stays_on_the_line_of_its_record(written: Errors) -> None:
    log.start("debug")
    fail_with("inner")
    (line,) = written.getvalue().splitlines()
    assert "it failed" in line
    assert "ValueError: inner" in line


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("error", ["error"]),
        ("warning", ["warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("debug", ["debug", "info", "warning", "error"]),
    ],
)
def test_a_level_tells_itself_and_what_is_graver(written: Errors, level: str, told: list[str]) -> None:
    log.start(level)
    for name in ("debug", "info", "warning", "error"):
        say(name, logging.getLevelName(name.upper()))
    assert [line.split()[1] for line in written.getvalue().splitlines()] == told


SECRETS = [
    ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
    ("authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
    ("MCP_MEMORY_TOKEN=s3cr3t-value", "s3cr3t-value"),
    ('{"api_key": "k3y value", "x": 1}', "k3y value"),
    ("password='two words'", "two words"),
    ("https://user:pa55@example.org/x?access_key=zzz9&y=1", "pa55"),
    ("https://user:pa55@example.org/x?access_key=zzz9&y=1", "zzz9"),
    ("cloned with ghp_" + "a1" * 18, "a1a1"),
    ("key sk-" + "proj-4567890123456789", "4567890123"),
    ("AKIA" + "IOSFODNN7EXAMPLE used", "IOSFODNN7"),
    ("jwt eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIBOg\n-----END RSA PRIVATE KEY-----", "MIIBOg"),
    ("-----BEGIN PRIVATE KEY-----\nMIIBOg and no end", "MIIBOg"),
]


@pytest.mark.parametrize(("message", "secret"), SECRETS)
def test_a_secret_is_taken_out(written: Errors, message: str, secret: str) -> None:
    log.start("info")
    say(message)
    assert "[redacted]" in written.getvalue()
    assert secret not in written.getvalue()


def test_a_secret_in_a_traceback_is_taken_out_too(written: Errors) -> None:
    log.start("debug")
    fail_with("token=s3cr3t")
    assert "ValueError" in written.getvalue()
    assert "s3cr3t" not in written.getvalue()


@pytest.mark.parametrize("text", ["a basic setup", "the tokenizer = Porter", "https://example.org/a@b", "sk-short"])
def test_ordinary_words_stay(text: str) -> None:
    assert log.redacted(text) == text


def test_pythons_warnings_and_those_of_other_packages_come_the_same_way(written: Errors) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log.start("error")
        warnings.warn("old\nthing", UserWarning, stacklevel=1)
    logging.getLogger("another.package").warning("token=abc")
    logging.getLogger("another.package").info("chatter")
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    assert "py.warnings" in lines[0]
    assert "token=[redacted]" in lines[1]


def test_a_log_file_is_private_whatever_the_umask_says_and_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "keepwell.log"
    # in a process of its own: half a character in a captured record would break the runner's own channel
    program = (
        "import logging, os, pathlib, sys; from keepwell import log; os.umask(0); "
        "log.start('info', pathlib.Path(sys.argv[1])); logging.getLogger('keepwell').error(sys.argv[2] + ' \\ud800 é')"
    )
    for word in ("first", "second"):
        subprocess.run([sys.executable, "-c", program, str(file), word], env=ENVIRONMENT, check=True)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [line.split()[-3:] for line in file.read_text(encoding="utf-8").splitlines()] == [
        ["first", r"\ud800", "é"],
        ["second", r"\ud800", "é"],
    ]


def test_with_a_log_file_standard_error_stays_empty(written: Errors, tmp_path: Path) -> None:
    log.start("info", tmp_path / "keepwell.log")
    say("to the file")
    assert written.getvalue() == ""


def test_a_log_file_that_cannot_be_opened_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        log.start("info", tmp_path / "missing" / "keepwell.log")


def test_starting_again_does_not_tell_everything_twice(written: Errors) -> None:
    log.start("info")
    log.start("info")
    say("once")
    assert written.getvalue().count("once") == 1


def test_no_standard_error_is_no_trouble(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    log.start("info")
    say("to nobody")
    log.stop()
    assert capfd.readouterr().out == ""


def test_a_standard_error_that_was_closed_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log.start("info")
    sys.stderr.close()
    say("to nobody")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>/dev/null"])
def test_a_process_whose_log_cannot_be_written_goes_on_and_leaves_standard_output_alone(redirection: str) -> None:
    program = (
        "import logging; from keepwell import log; log.start('debug'); logging.getLogger('keepwell').error('lost'); "
        "print('done')"
    )
    ran = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, program],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n")
