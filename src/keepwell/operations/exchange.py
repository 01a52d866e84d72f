"""Bringing memory out and in: JSON Lines (jsonlines.org), and the stores of the two published designs.

An export has one object a line: a header, the scopes, every change of the log, the counted deliveries, and an end that
says how many changes there were. Importing it is lossless and can be repeated. A file of lessons has the arguments of
`memory_add` on each line instead.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from keepwell.model import jsonform, record
from keepwell.model.category import check_name, checked_document
from keepwell.model.change import Change, ChangeKind, Draft, Payload
from keepwell.model.errors import Busy, Conflict, Denied, Invalid, KeepwellError, NotFound, Unsupported
from keepwell.model.scope import Scope, ScopeKind
from keepwell.model.text import DESCRIPTION_BYTES, LESSON_BYTES, REASON_BYTES, SOURCE_URI_BYTES, check_text, text_hash
from keepwell.operations import lessons
from keepwell.operations.library import Library
from keepwell.operations.parameters import ADD
from keepwell.operations.replies import BadLine, Imported
from keepwell.operations.safekeeping_replies import Exported
from keepwell.operations.table import bind
from keepwell.store.port import Delivery, Foreign, Reader, Unreadable, Writer

SOURCES: Final = ("mcp-memory", "mcp-memory-rs")
_BATCH: Final = 500
_TOLD_EVERY: Final = 10_000
_PAGE: Final = 1_000


def export(library: Library, *, output: str) -> Exported:
    """Write everything that the log has into a new file."""
    file = Path(output).expanduser().absolute()
    counts = {"scope": 0, "change": 0, "delivery": 0}
    with _new_file(file) as written, library.store.reading() as reader:
        for line in _lines_of(reader, library.version):
            counts[line["type"]] = counts.get(line["type"], 0) + 1
            written(jsonform.compact(line) + "\n")
            _tell_now_and_then(library, counts["change"], "changes written")
    return Exported(str(file), counts["scope"], counts["change"], counts["delivery"])


@contextmanager
def _new_file(file: Path) -> Iterator[Callable[[str], object]]:
    """A block that writes a private file, of which nothing is left if the block fails."""
    try:
        written = file.open("x", encoding="utf-8")
    except FileExistsError:
        raise Conflict("output: the file exists already; it was not touched.", hint="Name a new file.") from None
    except OSError as error:
        raise _unwritable(file, error) from None

    def write(text: str) -> None:
        # told here, where it is known to be this file and not the store
        try:
            written.write(text)
        except OSError as error:
            raise _unwritable(file, error) from None

    try:
        with written:
            file.chmod(0o600)
            yield write
            written.flush()
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _unwritable(file: Path, error: OSError) -> Denied:
    return Denied(f"output: it cannot be written ({error.strerror}).", file=file)


def _lines_of(reader: Reader, version: str) -> Iterator[dict[str, Any]]:
    yield {"type": "header", "format": record.FORMAT, "format_version": record.FORMAT_VERSION, "keepwell": version}
    for summary in reader.scopes():
        yield record.scope_record(summary.scope)
    after = changes = 0
    while page := reader.changes(after=after, limit=_PAGE):
        yield from map(record.change_record, page)
        after, changes = page[-1].seq, changes + len(page)
    for delivery in reader.deliveries():
        yield {
            "type": "delivery",
            "lesson": delivery.lesson_uid,
            "request_id": delivery.request_id,
            "method": delivery.method,
            "at": delivery.at,
        }
    yield {"type": "end", "changes": changes}


def import_any(library: Library, *, source: str, path: str | None, dry_run: bool) -> Imported:
    """Take in an export, a file of lessons, or with a design's name and a path that design's store.

    What is here already is passed over, so that an interrupted import can simply be run again. What breaks a rule is
    told by its place and the others come in. A store that is busy or may not be written ends the import.
    """
    if source in SOURCES:
        if path is None:
            raise Invalid(f"path is missing: where the store of {source} lies.")
        return _import_foreign(library, source, Path(path).expanduser(), dry_run=dry_run)
    if path is not None:
        raise Invalid(f"path goes with {' or '.join(SOURCES)} only.", hint="Name the file alone.")
    file = Path(source).expanduser()
    first = next(_lines(file), None)
    if first and _is_header(first[1]):
        return _import_export(library, file, dry_run=dry_run)
    return _import_lessons(library, file, dry_run=dry_run)


@dataclass(slots=True)
class _Tally:
    added: int = 0
    existing: int = 0
    refused: list[BadLine] = field(default_factory=list)

    def count(self, *, added: bool) -> None:
        if added:
            self.added += 1
        else:
            self.existing += 1

    def reply(self, *, dry_run: bool) -> Imported:
        return Imported(self.added, self.existing, tuple(self.refused), dry_run)


def _import_lessons(library: Library, file: Path, *, dry_run: bool) -> Imported:
    """Each line is its own durable write."""
    tally = _Tally()
    for number, line in _lines(file):
        try:
            arguments = bind(ADD, _parsed(line))
            outcome = _foretold(library, arguments) if dry_run else lessons.add(library, **arguments).outcome
            tally.count(added=outcome == "added")
        except (Busy, Denied):
            raise
        except KeepwellError as error:
            tally.refused.append(BadLine(number, error.line))
        _tell_now_and_then(library, number, "lines read")
    return tally.reply(dry_run=dry_run)


def _is_header(line: bytes) -> bool:
    try:
        return _parsed(line).get("format") == record.FORMAT
    except Invalid:
        return False


def _import_export(library: Library, file: Path, *, dry_run: bool) -> Imported:
    tally, importer = _Tally(), _Importer(library)
    for batch in _batches(_lines(file)):
        # a try is a transaction that is taken back
        with library.store.writing() as writer:
            for number, line in batch:
                try:
                    if (added := importer.take(writer, _parsed(line))) is not None:
                        tally.count(added=added)
                except (Busy, Denied):
                    raise
                except KeepwellError as error:
                    tally.refused.append(BadLine(number, error.line))
            if dry_run:
                writer.take_back()
        _tell_now_and_then(library, batch[-1][0], "lines read")
    if not importer.complete:
        told = "the file has no end: it was cut off, and what follows is not here."
        tally.refused.append(BadLine(importer.lines + 1, told))
    return tally.reply(dry_run=dry_run)


@dataclass(slots=True)
class _Importer:
    """Takes the lines of an export one by one, through the same gate as every other write."""

    library: Library
    scopes: dict[str, Scope] = field(default_factory=dict)
    complete: bool = False
    lines: int = 0

    def take(self, writer: Writer, line: dict[str, Any]) -> bool | None:
        """Whether a change is new here; None for a line that is no change."""
        self.lines += 1
        match line.get("type"):
            case "header":
                if line.get("format_version") != record.FORMAT_VERSION:
                    raise Unsupported("the file was written by a newer keepwell.", hint="Upgrade keepwell.")
            case "scope":
                scope = record.to_scope(line)
                self.scopes[scope.uid] = scope
            case "change":
                return self._take_change(writer, record.to_change(line))
            case "delivery":
                writer.take_deliveries([_delivery(line)])
            case "end":
                self.complete = True
            case _:
                raise Invalid("type is none that this keepwell knows.")
        return None

    def _take_change(self, writer: Writer, change: Change) -> bool:
        scope = self.scopes.get(change.scope_uid) if change.scope_uid else None
        if change.scope_uid and scope is None:
            raise Invalid("scope names none that stands above.")
        if writer.is_authentic(change) is False:
            raise Invalid("the text is not the one that its digest was taken over.")
        admit(self.library, change, scope.kind if scope else None)
        return writer.take(change, scope)


def admit(library: Library, change: Change | Draft, scope: ScopeKind | None) -> None:
    """Raise for a change from elsewhere that this launch could not have made itself: limits, permissions, access."""
    payload = change.payload or Payload()
    if payload.reason is not None:
        check_text("reason", payload.reason, max_bytes=REASON_BYTES)
    if change.kind.value.startswith("lesson."):
        if scope is None:
            raise Invalid("a lesson needs a scope.")
        library.require_write_to(scope)
        _admit_lesson(payload)
        return
    check_name(change.subject, parameter="subject")
    library.access.require(change.subject)
    if payload.text is not None and change.kind is not ChangeKind.LOG_APPENDED:
        checked_document(jsonform.parse(payload.text), parameter="text")


def _admit_lesson(payload: Payload) -> None:
    if payload.text is not None:
        check_text("text", payload.text, max_bytes=LESSON_BYTES)
    for item in payload.evidence:
        check_text("evidence.description", item.description, max_bytes=DESCRIPTION_BYTES)
        if item.source_uri is not None:
            check_text("evidence.source_uri", item.source_uri, max_bytes=SOURCE_URI_BYTES)


def _delivery(line: dict[str, Any]) -> Delivery:
    uid, request, method, at = (line.get(name) for name in ("lesson", "request_id", "method", "at"))
    if isinstance(uid, str) and isinstance(request, int) and isinstance(method, str) and isinstance(at, int):
        return Delivery(uid, request, method, at)
    raise Invalid("it is no delivery that this keepwell knows.")


def _import_foreign(library: Library, source: str, path: Path, *, dry_run: bool) -> Imported:
    tally = _Tally()
    numbered = enumerate(library.read_foreign(source, path), start=1)
    for batch in _batches(numbered):
        with library.store.writing() as writer:
            for number, item in batch:
                _take_item(library, writer, number, item, tally)
            if dry_run:
                writer.take_back()
        _tell_now_and_then(library, batch[-1][0], "entries read")
    return tally.reply(dry_run=dry_run)


def _take_item(
    library: Library, writer: Writer, number: int, item: Foreign | Delivery | Unreadable, tally: _Tally
) -> None:
    try:
        match item:
            case Delivery():
                writer.take_deliveries([item])
            case Unreadable():
                raise Invalid(f"{item.place}: {item.problem}")
            case Foreign():
                admit(library, item.draft, item.draft.scope.kind if item.draft.scope else None)
                tally.count(added=writer.record(item.draft, uid=item.uid, ms=item.ms))
    except (Busy, Denied):
        raise
    except KeepwellError as error:
        place = f"{item.place}: " if isinstance(item, Foreign) else ""
        tally.refused.append(BadLine(number, f"{place}{error.line}"))


def _batches(numbered: Iterable[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    batch: list[tuple[int, Any]] = []
    for entry in numbered:
        batch.append(entry)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _tell_now_and_then(library: Library, number: int, what: str) -> None:
    if number and number % _TOLD_EVERY == 0:
        library.tell(f"{number:,} {what}")


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
