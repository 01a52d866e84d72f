"""Standard output for a person: lines, tables and stored text.

Stored text is data. Each of its lines stands behind a bar, also where the terminal would break it, and what could steer
a terminal is shown as an escape, so that no stored text can close its frame or pass for keepwell's own words.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from apsw.unicode import grapheme_next_break, text_width, text_width_substr
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keepwell.surfaces.visible import visible

PREVIEW_WIDTH: Final = 100
"""How many columns a preview may take at most."""

_NARROWEST_PREVIEW: Final = 8
_UNBOUNDED: Final = 100_000
_BETWEEN_COLUMNS: Final = 3


def preview(text: str, width: int = PREVIEW_WIDTH, *, ellipsis: str = "…") -> str:
    """The text on one line, at most `width` columns wide, cut only between grapheme clusters (UAX #29)."""
    line = visible(" ".join(text.split()))
    if text_width(line) <= width:
        return line
    room = width - len(ellipsis)
    if room < 1:
        return ellipsis[: max(width, 0)]
    return str(text_width_substr(line, room)[1]) + ellipsis


def barred(text: str, *, bar: str, width: int | None = None) -> Iterator[str]:
    """Stored text line by line, each behind a bar and none wider than `width` columns with it."""
    room = None if width is None else max(width - len(bar), 1)
    for line in text.split("\n"):
        for piece in _pieces(visible(line), room):
            yield bar + piece


def _pieces(line: str, room: int | None) -> Iterator[str]:
    while room is not None and text_width(line) > room:
        # a cluster that is wider than all the room goes out whole
        piece = text_width_substr(line, room)[1] or line[: grapheme_next_break(line)]
        yield piece
        line = line[len(piece) :]
    yield line


class _Console(Console):
    """rich's console, without its own exit when the reader has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Standard output as it can be used: its width if it is a terminal, and whether it can show a bar."""

    def __init__(self) -> None:
        self._console = _Console(
            file=sys.stdout,
            # what is piped or kept in a file is for programs, too: there no cell is folded
            width=None if sys.stdout.isatty() else _UNBOUNDED,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        self._width = self._console.width if sys.stdout.isatty() else None
        drawn = _can_show("│─…", sys.stdout.encoding)
        self._box = box.SIMPLE_HEAD if drawn else box.ASCII
        self._bar = "│ " if drawn else "| "
        self._ellipsis = "…" if drawn else "..."

    def say(self, text: str) -> None:
        """Print a line of keepwell's own words; names and paths of others in it can start no line of their own."""
        self._console.print(Text(visible(text)), soft_wrap=True)

    def quote(self, text: str, *, indent: str = "") -> None:
        """Print stored text behind bars."""
        for line in barred(text, bar=indent + self._bar, width=self._width):
            self._console.print(Text(line), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; long cells are folded, never cut."""
        self._print_table(columns, rows, overflow_column=None)

    def previews(self, columns: Sequence[str], rows: Sequence[Sequence[object]], texts: Iterable[str]) -> None:
        """Print a table whose last column shows the beginning of a stored text, each behind a bar."""
        width = PREVIEW_WIDTH if self._width is None else min(PREVIEW_WIDTH, self._width - _width_of(columns, rows))
        room = max(width - len(self._bar), _NARROWEST_PREVIEW)
        shown = [self._bar + preview(text, room, ellipsis=self._ellipsis) for text in texts]
        cells = [(*row, text) for row, text in zip(rows, shown, strict=True)]
        self._print_table((*columns, "text"), cells, overflow_column="text")

    def _print_table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, overflow_column: str | None
    ) -> None:
        table = Table(box=self._box, pad_edge=False, show_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column == overflow_column)
        for row in rows:
            table.add_row(*(Text(visible(str(cell))) for cell in row))
        self._console.print(table)


def _width_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """How many columns of the terminal a table of these takes, with what stands before one column more."""
    widths = [max(len(str(cell)) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    return sum(widths) + len(widths) * _BETWEEN_COLUMNS


def _can_show(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
