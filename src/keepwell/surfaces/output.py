"""What a command prints: results on standard output, everything else on standard error; no locale can break it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from keepwell.model.errors import Denied, KeepwellError
from keepwell.surfaces.render import to_json
from keepwell.surfaces.visible import visible

PROGRAM: Final = "keepwell"


def let_nothing_break_output() -> None:
    """Let a console that cannot show a character get an escape instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        # a stream that somebody redirected inside the process may not be a file
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def results() -> Iterator[None]:
    """A block that writes to standard output, whole when it ends.

    `BrokenPipeError` when the reader has gone, `Denied` when it cannot be written. After either, what is left in the
    buffer goes nowhere, so that Python does not try again while it shuts down.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_rest(sys.stdout)
        raise
    except OSError as error:
        _discard_rest(sys.stdout)
        raise Denied(
            f"the result could not be written to standard output ({error.strerror}).",
            hint="What was asked for has been done all the same.",
        ) from None


def _discard_rest(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def print_text(text: str) -> None:
    """Print keepwell's own words as a result."""
    with results():
        sys.stdout.write(text.rstrip("\n") + "\n")


def print_json(plain: object) -> None:
    """Print one line of JSON as a result."""
    with results():
        _write_line(sys.stdout, plain)


def tell(error: KeepwellError, *, as_json: bool) -> None:
    """Say on standard error what went wrong; for people one line, and one more for each fact."""
    try:
        if as_json:
            facts = {name: str(fact) for name, fact in error.facts.items()}
            plain = {"code": error.code, "message": error.sentence, "hint": error.hint, "facts": facts}
            _write_line(sys.stderr, {"error": plain})
        else:
            lines = [f"{PROGRAM}: {error.line}", *(f"  {name}: {fact}" for name, fact in error.facts.items())]
            sys.stderr.write("".join(visible(line) + "\n" for line in lines))
            sys.stderr.flush()
    except OSError:
        # nobody is left to be told, and a second try at the end would change the exit status
        _discard_rest(sys.stderr)


def tell_progress(line: str) -> None:
    """Say on standard error how long work goes on."""
    try:
        sys.stderr.write(visible(line) + "\n")
        sys.stderr.flush()
    except OSError:
        _discard_rest(sys.stderr)


def _write_line(stream: TextIO, plain: object) -> None:
    """UTF-8 whatever the locale says; half a character, as in a foreign file name, becomes its JSON escape."""
    stream.flush()
    stream.buffer.write(to_json(plain).encode(errors="backslashreplace") + b"\n")
    stream.buffer.flush()
