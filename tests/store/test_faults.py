"""After any failure the store is whole: each call that changes the disk fails in turn, or is the last one.

The anchor is SQLite's own way of testing (sqlite.org/testing.html, I/O error and crash testing).
"""

import errno
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ALL, FAULTS, PROJECT_A, Clock, world_of
from tests.store.faults import DEATH, POWER_LOSS, Died, Disk, failing_disk

from keepwell.model.errors import KeepwellError
from keepwell.model.lesson import Author
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library
from keepwell.store.local.engine import LocalStore
from keepwell.wiring import uid_maker

EVIDENCE = [{"description": "seen"}]


@dataclass(frozen=True)
class Step:
    """What a person does: the operation, its arguments, and what must lie there before."""

    command: str
    arguments: dict[str, Any]


STEPS = {
    "add a lesson": Step("add", {"text": "new", "evidence": EVIDENCE}),
    "replace a lesson": Step("supersede", {"id": 1, "text": "better", "evidence": EVIDENCE}),
    "archive a lesson": Step("archive", {"id": 1}),
    "report on a lesson": Step("feedback", {"memory_id": 1, "verdict": "useful"}),
    "make a category": Step("write", {"category": "new", "data": {"a": 1}}),
    "replace a category": Step("write", {"category": "notes", "data": {"b": [1, 2, 3]}}),
    "merge into a category": Step("write", {"category": "notes", "data": {"c": None, "d": 4}, "merge": True}),
    "append to a log": Step("append", {"category": "journal", "data": {"n": 2}}),
    "make a log": Step("append", {"category": "other", "data": {"n": 0}}),
    "delete a category": Step("delete", {"category": "notes"}),
    "delete a log": Step("delete", {"category": "journal"}),
    "bring a version back": Step("revert", {"category": "gone", "version": 4}),
    "forget a lesson": Step("forget", {"what": "1", "yes": True}),
    "forget a category": Step("forget", {"what": "notes", "yes": True}),
    "compact": Step("compact", {"keep_versions": 1}),
    "repair": Step("doctor", {"fix": True}),
    "snapshot": Step("snapshot", {"dir": "SNAPSHOT"}),
}
KINDS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES, "death": DEATH, "power loss": POWER_LOSS}


def open_store(folder: Path) -> LocalStore:
    world = world_of(Clock())
    return LocalStore(folder / "memory.db", device="laptop", world=world, new_uid=uid_maker(world))


def library_over(store: LocalStore) -> Library:
    author = Author("person", "pi")
    caller = Caller(ALL, author, lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
    return Library(store, caller, uid_maker(world_of(Clock())), lambda _path: True, "test")


def do(store: LocalStore, command: str, arguments: dict[str, Any]) -> Any:
    [operation] = [row for row in OPERATIONS if row.command == command]
    return library_over(store).perform(operation, arguments)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a lesson, documents, a log whose file lacks an entry, and something deleted."""
    folder = tmp_path_factory.mktemp("template")
    store = open_store(folder)
    do(store, "add", {"text": "old", "evidence": EVIDENCE, "reason": "why"})
    do(store, "write", {"category": "notes", "data": {"a": 1}})
    do(store, "write", {"category": "notes", "data": {"a": 1, "c": 3}})
    do(store, "write", {"category": "gone", "data": {"x": 1}})
    do(store, "delete", {"category": "gone"})
    do(store, "append", {"category": "journal", "data": {"n": 0}})
    store.settle()
    do(store, "append", {"category": "journal", "data": {"n": 1}})
    store._unsettled = False
    store.close()
    return folder


def visible(store: LocalStore) -> dict[str, Any]:
    """Everything that a user can see."""
    with store.reading() as reader:
        counts = reader.counts()
        lessons = []
        for number in range(1, counts.lessons + 1):
            lesson = reader.lesson(number)
            assert lesson
            lessons.append((lesson.text, lesson.status, lesson.superseded_by, len(reader.feedback(number, limit=9))))
        documents = {row.name: reader.document(row.name) for row in reader.categories(after="", limit=99)}
        names = ["notes", "gone", "journal", "new", "other"]
        return {
            "lessons": lessons,
            "documents": {name: json.loads(document.text) for name, document in documents.items() if document},
            "edited": [name for name, document in documents.items() if document and document.edited_outside],
            "versions": {name: [v.hash for v in reader.versions(name, limit=99, before=None)] for name in names},
            "changes": counts.changes,
        }


def without_times(state: dict[str, Any]) -> str:
    for document in state["documents"].values():
        for entry in document.get("entries", []):
            del entry["ts"]
    if any(name in state["documents"] for name in ("journal", "other")):
        # a log's hash depends on its times
        state["versions"].pop("other", None)
    return json.dumps(state, sort_keys=True)


def state_of(folder: Path) -> str:
    store = open_store(folder)
    try:
        return without_times(visible(store))
    finally:
        store.close()


def attempt(folder: Path, disk: Disk, step: Step, turn: int, kind: int) -> bool:
    """Do the step on a disk that fails at that call; whether it was acknowledged. Ends as a process ends."""
    store = open_store(folder)
    disk.arm(turn, kind)
    arguments = {
        name: str(folder.parent / "snapshot") if value == "SNAPSHOT" else value
        for name, value in step.arguments.items()
    }
    try:
        do(store, step.command, arguments)
        acknowledged = True
    except (KeepwellError, Died) as error:
        acknowledged = False
        told = error.line if isinstance(error, KeepwellError) and not disk.dead else "denied: "
        assert told.startswith(("denied: ", "busy: ", "corrupt: ")), told
        assert "sqlite" not in told.lower()
    with suppress(Died, OSError):
        store.close()
    disk.disarm()
    return acknowledged


def require_whole(folder: Path) -> None:
    """The store opens, the next write settles what is left, and then nothing is wrong."""
    store = open_store(folder)
    try:
        do(store, "write", {"category": "after", "data": {"ok": True}})
        store.mend()
        assert store.check() == ()
        assert [found for found in store.findings() if found.code != "disk"] == []
        with store.reading() as reader:
            for row in reader.categories(after="", limit=99):
                document = reader.document(row.name)
                assert document
                assert (folder / "categories" / f"{row.name}.json").read_text(encoding="utf-8") == document.text
    finally:
        store.close()
    assert not list((folder / "categories" / ".staged").iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STEPS)
def test_after_each_failing_call_the_store_is_whole(
    template: Path, tmp_path: Path, name: str, kind: str, record_property: Callable[[str, object], None]
) -> None:
    step = STEPS[name]
    before = state_of(copied(template, tmp_path / "before"))
    after = result_of(template, tmp_path / "after", step)
    turn, injected = 0, 0
    while True:
        turn += 1
        folder = copied(template, tmp_path / f"try {turn}")
        with failing_disk(folder.parent) as disk:
            acknowledged = attempt(folder, disk, step, turn, KINDS[kind])
        if not disk.injected:
            assert acknowledged
            break
        injected += 1
        now = state_of(folder)
        assert now == after if acknowledged else now in (before, after), f"at call {turn}"
        require_whole(folder)
        shutil.rmtree(folder.parent)
    record_property(FAULTS, injected)
    assert injected > 3


def copied(template: Path, place: Path) -> Path:
    folder = place / "store"
    shutil.copytree(template, folder)
    return folder


def result_of(template: Path, place: Path, step: Step) -> str:
    folder = copied(template, place)
    with failing_disk(place) as disk:
        assert attempt(folder, disk, step, turn=-1, kind=errno.EIO)
    return state_of(folder)


def test_the_disk_fails_when_it_is_told_to(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with failing_disk(tmp_path) as disk:
        disk.arm(1, errno.ENOSPC)
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "x").mkdir()
        disk.arm(1, DEATH)
        with pytest.raises(Died):
            (tmp_path / "x").mkdir()
        with pytest.raises(Died):
            (tmp_path / "y").mkdir()
    store.close()
