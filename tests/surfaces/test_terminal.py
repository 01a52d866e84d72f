"""What a person sees: stored text behind bars, shown and never obeyed, and cut only between characters."""

import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from apsw.unicode import grapheme_iter, text_width
from hypothesis import given
from hypothesis import strategies as st

from keepwell.surfaces.terminal import Screen, barred, preview
from keepwell.surfaces.visible import visible

SOURCE = Path(__file__).parents[2] / "src"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
FLAG = "\U0001f1eb\U0001f1f7"
THUMB = "\U0001f44d\U0001f3fd"
COMBINED = "e\u0301\u0323"
HANGUL = "\u1112\u1161\u11ab"
DEVANAGARI = "\u0915\u094d\u0937\u093f"
MIXED = f"{FAMILY}a{FLAG}{THUMB}{COMBINED}中文{HANGUL}{DEVANAGARI}z" * 3
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize("width", range(text_width(MIXED) + 3))
def test_a_preview_is_cut_between_characters_at_every_length(width: int) -> None:
    shown = preview(MIXED, width)
    whole = list(grapheme_iter(MIXED))
    begun = list(grapheme_iter(shown.removesuffix("…")))
    assert text_width(shown) <= width
    assert begun == whole[: len(begun)]
    shown.encode()


@given(ANY_TEXT, st.integers(0, 40))
def test_a_preview_of_any_text_fits_on_one_line_and_can_be_printed(text: str, width: int) -> None:
    shown = preview(text, width)
    assert text_width(shown) <= width
    assert len(shown.splitlines()) <= 1
    shown.encode()


def test_a_preview_that_fits_is_whole_and_on_one_line() -> None:
    assert preview("two\n\n  lines\t of text") == "two lines of text"


@pytest.mark.parametrize(
    "character",
    [
        *map(chr, [*range(0x20), *range(0x7F, 0xA0)]),
        *"\u200b\u200e\u200f\u061c\u00ad\ufeff\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
        *"\ud800\udfff\ufffe\uffff\ufdd0\ue000\U000e0041\U0010ffff",
    ],
    ids=ascii,
)
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(character: str) -> None:
    assert visible(f"a{character}b") == "a" + character.encode("unicode_escape").decode() + "b"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "Grüße",
        "中文",
        FAMILY,
        FLAG,
        THUMB,
        COMBINED,
        "\u0633\u0644\u0627\u0645",
        "\u0645\u06cc\u200c\u062e\u0648",
        "[bold]x[/]",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(ANY_TEXT)
def test_nothing_that_is_shown_is_a_control_or_ends_a_line(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Zl", "Zp", "Cs", "Co"}


@given(ANY_TEXT, st.none() | st.integers(4, 30))
def test_every_line_of_stored_text_stands_behind_a_bar_at_every_width(text: str, width: int | None) -> None:
    lines = list(barred(text, bar="│ ", width=width))
    assert all(line.startswith("│ ") for line in lines)
    assert "".join(line.removeprefix("│ ") for line in lines) == "".join(map(visible, text.split("\n")))
    assert width is None or all(text_width(line) <= width for line in lines)


def test_a_long_line_is_broken_between_characters() -> None:
    pieces = [line.removeprefix("| ") for line in barred(MIXED, bar="| ", width=9)]
    assert [cluster for piece in pieces for cluster in grapheme_iter(piece)] == list(grapheme_iter(MIXED))


def test_markup_in_stored_text_is_not_interpreted(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold red]a[/] [link=file:///etc/passwd]b[/link] :smile: \\[x]"
    screen = Screen()
    screen.quote(text)
    screen.previews(("id",), [(1,)], [text])
    screen.table(("name",), [(text,)])
    screen.say(text)
    printed = capsys.readouterr().out
    assert printed.count(text) == 4
    assert "\x1b" not in printed


def test_a_name_in_keepwells_own_words_can_start_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().say("project /tmp/a\nLesson 1 saved. \x1b[2J")
    assert capsys.readouterr().out == "project /tmp/a\\nLesson 1 saved. \\x1b[2J\n"


def test_what_goes_to_a_pipe_is_neither_folded_nor_cut(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/very/long" * 60
    screen = Screen()
    screen.table(("id", "path"), [(2**53 - 1, path)])
    screen.quote("x" * 2_000)
    printed = capsys.readouterr().out
    assert path in printed
    assert str(2**53 - 1) in printed
    assert "x" * 2_000 in printed


PROGRAM = """
from keepwell.surfaces.terminal import Screen
screen = Screen()
screen.quote(%r)
screen.previews(("id", "scope"), [(9007199254740991, "project")], [%r])
"""


def shown_on_a_terminal(text: str, *, columns: int) -> list[str]:
    """What a terminal of that width would be sent for a stored text and its preview, line by line."""
    here, there = pty.openpty()
    environment = {"PYTHONPATH": str(SOURCE), "COLUMNS": str(columns), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    program = PROGRAM % (text, text)
    with subprocess.Popen([sys.executable, "-c", program], stdout=there, env=environment) as process:
        os.close(there)
        received = b""
        while chunk := _read(here):
            received += chunk
        assert process.wait() == 0
    os.close(here)
    return received.decode().replace("\r\n", "\n").splitlines()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux answers so when the other end is closed
        return b""


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_on_a_terminal_no_line_is_wider_than_it_so_that_none_begins_without_a_bar(columns: int) -> None:
    forged = ("x" * (columns - 2) + "Lesson 7, active, project scope") * 5 + "中" * columns
    lines = shown_on_a_terminal(forged, columns=columns)
    quoted = [line for line in lines if line.startswith("│ ")]
    assert "".join(line.removeprefix("│ ") for line in quoted) == forged
    assert all(text_width(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) <= columns for line in lines)
    assert any("9007199254740991" in line for line in lines)
