"""The write protocol of categories under kills and errors: what the next process, or the same one, finds and does.

`test_faults` fails every call of every operation, SQLite's own calls included, and lets the doctor clean up. Here
processes really die, hands have edited files before, and nothing but the next write may put things right.
"""

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FAULTS
from tests.store.faults import failing_disk
from tests.store.test_faults import do, open_store

from keepwell.model import jsonform
from keepwell.model.category import CategoryKind
from keepwell.model.errors import KeepwellError
from keepwell.store.local.engine import LocalStore

CRASHING = Path(__file__).with_name("crash_process.py")
HAND = '{"by": "hand"}'


@dataclass(frozen=True)
class Step:
    """What is done: commands and arguments, and what else is the case."""

    commands: list[tuple[str, dict[str, Any]]]
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"commands": self.commands, **self.options})


def write(name: str, data: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    return "write", {"category": name, "data": data, **more}


STEPS = {
    "a first write": Step([write("new", {"a": 1})]),
    "a first write torn": Step([write("new", {"a": 1})], {"torn": True}),
    "a replacement": Step([write("notes", {"b": 2})]),
    "a replacement without hard links": Step([write("notes", {"b": 2})], {"links": False}),
    "a merge": Step([write("notes", {"c": 3, "a": None}, merge=True)]),
    "a write onto an edited file": Step([write("edited", {"z": 1}, merge=True)]),
    "a write onto a file put there by hand": Step([write("stranger", {"z": 1}, merge=True)]),
    "an append and its settling": Step([("append", {"category": "log", "data": {"n": 9}}), ("settle", {})]),
    "the settling of an edited log": Step([("append", {"category": "diary", "data": {"n": 9}}), ("settle", {})]),
    "a deletion": Step([("delete", {"category": "notes"})]),
    "a deletion without hard links": Step([("delete", {"category": "notes"})], {"links": False}),
    "a deletion of an edited file": Step([("delete", {"category": "edited"})]),
    "a deletion of a log": Step([("delete", {"category": "log"})]),
    "bringing a version back": Step([("revert", {"category": "notes", "version": 1})]),
    "bringing back what was deleted": Step([("revert", {"category": "gone", "version": 3})]),
    "the mending of a missing file": Step([("doctor", {"fix": True})]),
}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that hands have been in: two edited files, a file of nobody's, a missing one, one that was deleted."""
    folder = tmp_path_factory.mktemp("hands") / "store"
    store = open_store(folder)
    do(store, *write("notes", {"a": 1}))
    do(store, *write("notes", {"a": 2}))
    do(store, *write("gone", {"g": 1}))
    do(store, "delete", {"category": "gone"})
    for name in ("edited", "missing"):
        do(store, *write(name, {"name": name}))
    for name in ("log", "diary"):
        do(store, "append", {"category": name, "data": {"n": 0}})
    store.close()
    files = folder / "categories"
    for name in ("edited", "diary", "stranger"):
        (files / f"{name}.json").write_text(HAND, encoding="utf-8")
        (files / f"{name}.json").chmod(0o600)
    (files / "missing.json").unlink()
    return folder


@contextmanager
def opened(folder: Path) -> Iterator[LocalStore]:
    store = open_store(folder)
    try:
        yield store
    finally:
        store.close()


def state_of(store: LocalStore) -> str:
    """What is believed, without the times of entries; whether the file of a log lags behind makes no difference."""
    with store.reading() as reader:
        names = [row.name for row in reader.categories(after="", limit=99)] + ["stranger", "gone"]
        found = {name: reader.document(name) for name in sorted({*names, "notes", "edited", "log"})}
        told: dict[str, Any] = {}
        for name, document in found.items():
            data, edited = (document.data, document.edited_outside) if document else (None, False)
            if data and document and document.category.kind is CategoryKind.LOG:
                data, edited = [(entry["id"], entry["data"]) for entry in data["entries"]], False
            versions = [version.action for version in reader.versions(name, limit=99, before=None)]
            told[name] = (data, edited, versions)
    return json.dumps(told, sort_keys=True)


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    paths = [path for name in ("categories", "backups") for path in (folder / name).rglob("*")]
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns, path.lstat().st_size) for path in paths}


def require_settled_by_the_next_write(store: LocalStore, folder: Path) -> None:
    """The next write decides what was staged, and every file says what its category says."""
    do(store, *write("after", {"ok": True}))
    assert list((folder / "categories" / ".staged").iterdir()) == []
    assert store.check() == ()
    named = {"missing_file", "edited_outside", "unknown_file", "unsettled", "disk"}
    findings = {(finding.code, finding.subject.strip("'")) for finding in store.findings()}
    assert {code for code, _ in findings} <= named
    with store.reading() as reader:
        live = reader.categories(after="", limit=99)
        for row in live:
            document = reader.document(row.name)
            file = folder / "categories" / f"{row.name}.json"
            assert document
            if findings & {("unsettled", row.name), ("missing_file", row.name)}:
                continue
            if document.edited_outside:
                assert ("edited_outside", row.name) in findings
                continue
            assert file.read_text(encoding="utf-8") == document.text
    files = {path.name.removesuffix(".json") for path in (folder / "categories").glob("*.json")}
    assert files <= {row.name for row in live} | {"stranger"}


def require_hands_kept(store: LocalStore, folder: Path) -> None:
    """What hands have written is still in its file, or a backup has it, or a version."""
    hand = jsonform.content_hash(jsonform.canonical(json.loads(HAND)))
    for name in ("edited", "stranger", "diary"):
        places = [folder / "categories" / f"{name}.json", *(folder / "backups").glob(f"{name}.*.json")]
        texts = [path.read_text(encoding="utf-8") for path in places if path.exists()]
        with store.reading() as reader:
            versions = [version.hash for version in reader.versions(name, limit=99, before=None)]
        assert HAND in texts or hand in versions, name


@pytest.mark.parametrize("name", STEPS)
def test_weakness_9_a_process_killed_at_any_call_leaves_the_old_or_the_new_and_the_next_write_settles_it(
    template: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    command = [sys.executable, str(CRASHING), str(template), str(tmp_path), STEPS[name].to_json()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    *deaths, survivor = [json.loads(line) for line in ended.stdout.splitlines()]
    assert survivor["acknowledged"]
    with opened(tmp_path / str(survivor["turn"])) as store:
        after = state_of(store)
    shutil.copytree(template, tmp_path / "before")
    with opened(tmp_path / "before") as store:
        before = state_of(store)
    seen = set()
    for death in deaths:
        folder = tmp_path / str(death["turn"])
        files = listing(folder)
        with opened(folder) as store:
            now = state_of(store)
            assert now == after if death["acknowledged"] else now in (before, after), death
            assert listing(folder) == files, death
            require_settled_by_the_next_write(store, folder)
            require_hands_kept(store, folder)
            seen.add(now)
    assert len(deaths) > 4
    # some died before their commit and some after it
    assert seen == {before, after}
    record_property(FAULTS, len(deaths))


IN_PROCESS = [name for name, step in STEPS.items() if not step.options]
KINDS = [errno.EIO, errno.ENOSPC, errno.EACCES]


@pytest.mark.parametrize(
    ("name", "kind"), [(name, KINDS[number % 3]) for number, name in enumerate(IN_PROCESS)], ids=IN_PROCESS
)
def test_a_process_lives_on_after_an_error_of_the_disk_and_its_next_write_settles_it(
    template: Path, tmp_path: Path, name: str, kind: int, record_property: Callable[[str, object], None]
) -> None:
    with opened(shutil.copytree(template, tmp_path / "before")) as store:
        before = state_of(store)
    turn, states = 0, [before]
    while True:
        turn += 1
        folder = shutil.copytree(template, tmp_path / f"turn {turn}")
        with failing_disk(folder) as disk, opened(folder) as store:
            disk.arm(turn, kind)
            told: KeepwellError | None = None
            try:
                for command, arguments in STEPS[name].commands:
                    if command == "settle":
                        store.settle()
                    else:
                        do(store, command, arguments)
            except KeepwellError as error:
                told = error
            disk.armed = False
            now = state_of(store)
            if not disk.injected:
                break
            states.append(now)
            assert told is None or told.code in ("denied", "corrupt", "busy")
            require_settled_by_the_next_write(store, folder)
            require_hands_kept(store, folder)
            if told is None:
                assert now != before or name == "the mending of a missing file", f"at call {turn}"
        shutil.rmtree(folder)
    assert told is None
    assert set(states) <= {before, now}
    assert turn > 6
    record_property(FAULTS, turn - 1)
