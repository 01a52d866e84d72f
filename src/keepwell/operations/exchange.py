"""Taking lessons in from a file: JSON Lines, one object of `memory_add` arguments a line (jsonlines.org)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keepwell.model import jsonform
from keepwell.model.errors import Busy, Denied, Invalid, KeepwellError, NotFound
from keepwell.model.text import text_hash
from keepwell.operations import lessons
from keepwell.operations.library import Library
from keepwell.operations.parameters import ADD
from keepwell.operations.replies import BadLine, Imported
from keepwell.operations.table import bind


def import_lessons(library: Library, *, file: str, dry_run: bool) -> Imported:
    """Add every line's lesson; a broken line is told by its number and the others come in.

    Each line is its own durable write, so that an interrupted import can simply be run again: what is remembered
    already is reused. A store that is busy or may not be written ends the import with that error.
    """
    outcomes = {"added": 0, "existing": 0}
    refused = []
    for number, line in _lines(Path(file).expanduser()):
        try:
            arguments = bind(ADD, _parsed(line))
            outcomes[_foretold(library, arguments) if dry_run else lessons.add(library, **arguments).outcome] += 1
        except (Busy, Denied):
            raise
        except KeepwellError as error:
            refused.append(BadLine(number, error.line))
    return Imported(**outcomes, refused=tuple(refused), dry_run=dry_run)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from _numbered(file)
    except FileNotFoundError:
        raise NotFound("file: there is no such file.", file=path) from None
    except OSError as error:
        raise Denied(f"file: it cannot be read ({error.strerror}).", file=path) from None


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        # an editor may have put a byte-order mark before the first line
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            yield number, text


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = jsonform.parse(line.decode())
    except UnicodeDecodeError:
        raise Invalid("the line is not in UTF-8.") from None
    if not isinstance(value, dict):
        raise Invalid("the line is not a JSON object.")
    return value


def _foretold(library: Library, arguments: dict[str, Any]) -> str:
    with library.store.reading() as reader:
        scope = reader.scope(library.scope_named(arguments["scope"]))
        known = scope and reader.active_lesson(scope, text_hash(arguments["text"]))
    return "existing" if known else "added"
