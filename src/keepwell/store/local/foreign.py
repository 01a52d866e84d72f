"""Reading the stores of the two published designs, without changing them: what they hold as drafts of changes.

mcp-memory: one SQLite database of lessons. mcp-memory-rs: a folder of category files with a database of versions and a
folder of backups. Each draft has a uid made from what it says and where it stood, so that reading again gives the same.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw

from keepwell.model import journal, jsonform
from keepwell.model.category import checked_document
from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Denied, Invalid, NotFound, Unsupported
from keepwell.model.lesson import Author, Evidence, Verdict
from keepwell.model.scope import GLOBAL, Project, ScopeRef
from keepwell.store.local.category_files import read_regular
from keepwell.store.port import Delivery, Foreign, Unreadable
from keepwell.store.sql import statements

SQL: Final = statements("local/foreign.sql")
_BACKUP: Final = re.compile(r"(?P<name>.+)\.(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?P<deleted>\.deleted)?\.json")

Item = Foreign | Delivery | Unreadable


def read_foreign(source: str, path: Path) -> Iterator[Item]:
    """What a store of the design that `source` names holds, oldest first; what cannot be read is told and skipped."""
    return _lessons(path) if source == "mcp-memory" else _categories(path)


def _opened(database: Path) -> apsw.Connection:
    # without its write-ahead log a database can be read from a folder that may not be written
    frozen = "" if database.with_name(database.name + "-wal").exists() else "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{database.absolute().as_uri()}?mode=ro{frozen}", flags=flags)
    connection.row_trace = lambda cursor, row: {
        column[0]: value for column, value in zip(cursor.get_description(), row, strict=True)
    }
    return connection


def _uid(*parts: object) -> str:
    """A UUID of version 8 (RFC 9562) from the SHA-256 of what is named."""
    digest = bytearray(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:16])
    digest[6] = 0x80 | digest[6] & 0x0F
    digest[8] = 0x80 | digest[8] & 0x3F
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _lessons(database: Path) -> Iterator[Item]:
    if not database.is_file():
        raise NotFound("path: there is no such database.", file=database)
    try:
        connection = _opened(database)
        rows = {name: list(connection.execute(SQL[f"lessons_{name}"])) for name in _LESSON_TABLES}
        connection.close()
    except apsw.Error as error:
        raise Unsupported("path: it is no database of mcp-memory.", file=database, detail=error) from None
    uids = {row["id"]: _uid("mcp-memory", row["created_at"], row["id"], row["text"]) for row in rows["memories"]}
    timed = [(row["created_at"], item) for row in rows["memories"] for item in [_added(row, rows, uids)]]
    timed += [(row["created_at"], _archived(row, rows, uids)) for row in rows["archivings"]]
    timed += [(row["created_at"], _rated(row, rows, uids)) for row in rows["feedback"]]
    yield from (item for _, item in sorted(timed, key=lambda pair: pair[0]))
    for row in rows["retrievals"]:
        yield Delivery(uids[row["memory_id"]], row["request_id"], row["method"], row["retrieved_at"])


_LESSON_TABLES: Final = ("memories", "evidence", "archivings", "feedback", "retrievals")


def _scope(row: dict[str, Any]) -> ScopeRef:
    return ScopeRef(Project(row["project_path"], row["name"])) if row["project_path"] else GLOBAL


def _author(row: dict[str, Any]) -> Author:
    return Author("assistant", row["source_client"] or "unknown", row["source_session"], row["source_model"])


def _added(row: dict[str, Any], rows: dict[str, list[dict[str, Any]]], uids: dict[int, str]) -> Foreign:
    evidence = [item for item in rows["evidence"] if item["memory_id"] == row["id"]]
    payload = Payload(row["text"], tuple(Evidence(item["description"], item["source_uri"]) for item in evidence))
    uid = uids[row["id"]]
    supersedes = uids.get(row["supersedes_id"]) if row["supersedes_id"] else None
    draft = Draft(ChangeKind.LESSON_ADDED, uid, _scope(row), _author(row), payload, supersedes=supersedes)
    return Foreign(draft, _uid("added", uid), row["created_at"], f"lesson {row['id']}")


def _memory_of(row: dict[str, Any], rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return next(memory for memory in rows["memories"] if memory["id"] == row["memory_id"])


def _archived(row: dict[str, Any], rows: dict[str, list[dict[str, Any]]], uids: dict[int, str]) -> Foreign:
    uid = uids[row["memory_id"]]
    scope = _scope(_memory_of(row, rows))
    draft = Draft(ChangeKind.LESSON_ARCHIVED, uid, scope, _author(row), Payload(reason=row["reason"]))
    return Foreign(draft, _uid("archived", uid), row["created_at"], f"event {row['id']}")


def _rated(row: dict[str, Any], rows: dict[str, list[dict[str, Any]]], uids: dict[int, str]) -> Foreign:
    uid = uids[row["memory_id"]]
    scope, payload = _scope(_memory_of(row, rows)), Payload(reason=row["reason"])
    verdict = Verdict(row["verdict"])
    draft = Draft(ChangeKind.LESSON_RATED, uid, scope, _author(row), payload, verdict=verdict)
    return Foreign(draft, _uid("rated", uid, row["id"], row["created_at"]), row["created_at"], f"report {row['id']}")


def _categories(base: Path) -> Iterator[Item]:
    folder = base / "categories"
    if not folder.is_dir():
        raise NotFound("path: it has no folder categories, so it is no store of mcp-memory-rs.", folder=base)
    known = _known_versions(base / "memory.db")
    pasts: dict[str, list[tuple[str, Path]]] = {}
    for path in sorted((base / "backups").glob("*.json")):
        if parts := _BACKUP.fullmatch(path.name):
            pasts.setdefault(parts["name"], []).append((parts["time"], path))
    for name in sorted({path.stem for path in folder.glob("*.json")} | pasts.keys()):
        present = folder / f"{name}.json"
        dated = sorted(pasts.get(name, []))
        yield from _states(name, dated, present if present.exists() else None, known.get(name, {}))


def _known_versions(database: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What the database says of versions, by category and hash; nothing where it cannot be read."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    try:
        connection = _opened(database)
        for row in connection.execute(SQL["category_versions"]):
            found.setdefault(row["category_name"], {})[row["content_hash"]] = row
        connection.close()
    except apsw.Error:
        return found
    return found


def _states(
    name: str, past: list[tuple[str, Path]], present: Path | None, known: dict[str, dict[str, Any]]
) -> Iterator[Item]:
    # a backup holds what was there until its time: each state began when the one before it ended
    began = None
    for time, path in past:
        ended = _milliseconds(f"{time[:10]}T{time[11:].replace('-', ':')}+00:00")
        yield _state(name, path, known, began if began is not None else ended)
        began = ended
    if present is not None:
        yield _state(name, present, known, began if began is not None else int(present.stat().st_mtime * 1000))
    elif began is not None:
        draft = Draft(ChangeKind.CATEGORY_DELETED, name, None, Author("assistant", "mcp-memory-rs"), Payload())
        yield Foreign(draft, _uid("deleted", name, began), began, f"category {name}")


def _state(name: str, path: Path, known: dict[str, dict[str, Any]], guessed_ms: int) -> Foreign | Unreadable:
    try:
        data = read_regular(path) or b""
        text = checked_document(jsonform.parse(data.decode()), parameter=path.name)
        if journal.kind_of(jsonform.read(text)) == "log":
            journal.taken_apart(jsonform.read(text))
    except UnicodeDecodeError:
        return Unreadable(path.name, "it is not in UTF-8.")
    except (Invalid, Denied) as error:
        return Unreadable(path.name, error.sentence)
    row = known.get(jsonform.content_hash_of(data), {})
    at = _milliseconds(row["timestamp"]) if row else guessed_ms
    author = Author(str(row.get("actor") or "assistant"), "mcp-memory-rs")
    draft = Draft(ChangeKind.CATEGORY_WRITTEN, name, None, author, Payload(text=text, reason=row.get("reason")))
    return Foreign(draft, _uid("written", name, at, jsonform.content_hash(text)), at, path.name)


def _milliseconds(text: str) -> int:
    moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
