"""Many processes on one store: no key, no entry and no version is lost, whoever dies."""

import json
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import OpenLocal

from keepwell.model.category import Document
from keepwell.store.local.engine import LocalStore

WRITER = Path(__file__).with_name("category_process.py")


def start(database: Path, name: str, what: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(database), name, what, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(processes: list["subprocess.Popen[str]"]) -> list[dict[str, Any]]:
    ended = [process.communicate(timeout=120) for process in processes]
    assert [errors for _, errors in ended] == [""] * len(processes)
    return [json.loads(line) for output, _ in ended for line in output.splitlines()]


def document(store: LocalStore, name: str) -> Document:
    with store.reading() as reader:
        found = reader.document(name)
    assert found
    return found


def require_sound(store: LocalStore, folder: Path) -> None:
    store.mend()
    assert store.check() == ()
    assert [found for found in store.findings() if found.code != "disk"] == []
    assert list((folder / "categories" / ".staged").iterdir()) == []


def test_weakness_11_thirty_processes_merge_keys_into_one_category_at_once_and_all_are_there(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    said = finished([start(tmp_path / "memory.db", f"p{number}", "merge", 1) for number in range(30)])
    store = open_local()
    assert document(store, "shared").data.keys() == {line["key"] for line in said}
    with store.reading() as reader:
        versions = reader.versions("shared", limit=99, before=None)
    assert len(versions) == 30
    assert all(newer.previous_hash == older.hash for newer, older in pairwise(versions))
    require_sound(store, tmp_path)


def test_twenty_processes_append_to_one_log_and_no_entry_is_lost(open_local: OpenLocal, tmp_path: Path) -> None:
    said = finished([start(tmp_path / "memory.db", f"p{number}", "append", 20) for number in range(20)])
    store = open_local()
    entries = document(store, "log").data["entries"]
    assert {entry["id"]: entry["data"]["key"] for entry in entries} == {line["id"]: line["key"] for line in said}
    assert [entry["id"] for entry in entries] == list(range(400))
    assert [entry["ts"] for entry in entries] == sorted(entry["ts"] for entry in entries)
    require_sound(store, tmp_path)


def test_while_others_write_a_reader_never_sees_an_edit_that_nobody_made(open_local: OpenLocal, tmp_path: Path) -> None:
    store = open_local()
    writers = [start(tmp_path / "memory.db", f"p{number}", "merge", 40) for number in range(3)]
    reads, seen = 0, 0
    while any(writer.poll() is None for writer in writers):
        with store.reading() as reader:
            found = reader.document("shared")
        if found:
            reads += 1
            assert not found.edited_outside
            assert len(found.data) >= seen
            seen = len(found.data)
    finished(writers)
    assert reads > 10
    assert len(document(store, "shared").data) == 120


@pytest.mark.parametrize("what", ["flip", "churn"])
def test_a_reader_is_never_misled_by_documents_that_come_back_or_categories_that_come_and_go(
    open_local: OpenLocal, tmp_path: Path, what: str
) -> None:
    store = open_local()
    writers = [start(tmp_path / "memory.db", f"p{number}", what, 60) for number in range(3)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        with store.reading() as reader:
            found = reader.document(what)
            edits = reader.edits()
        findings = {finding.code for finding in store.findings()} - {"disk"}
        reads += 1
        assert not (found and found.edited_outside)
        assert edits == ()
        # a staged file may be seen on its way
        assert findings <= {"staged"}
    finished(writers)
    assert reads > 10
    require_sound(store, tmp_path)


def test_a_log_whose_writers_were_killed_is_settled_by_the_next_keepwell_that_appends(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    process = start(tmp_path / "memory.db", "p", "append", 1_000_000)
    assert process.stdout
    said = [json.loads(process.stdout.readline()) for _ in range(20)]
    process.kill()
    process.communicate()
    file = tmp_path / "categories" / "log.json"
    assert len(json.loads(file.read_bytes())["entries"]) < len(said)
    finished([start(tmp_path / "memory.db", "q", "append", 1)])
    entries = json.loads(file.read_bytes())["entries"]
    assert [entry["data"]["key"] for entry in entries][: len(said)] == [line["key"] for line in said]
    assert entries[-1]["data"]["key"] == "q-0"
    assert open_local().findings() == ()


def test_kills_at_random_under_mixed_load_lose_nothing_that_was_acknowledged(
    open_local: OpenLocal, tmp_path: Path
) -> None:
    chance = random.Random(5)
    database = tmp_path / "store" / "memory.db"
    acknowledged: set[str] = set()
    for burst in range(25):
        processes = [start(database, f"b{burst}p{number}", "mixed", 1_000) for number in range(3)]
        for process in processes:
            assert process.stdout
            first = process.stdout.readline()
            assert first, process.communicate()[1]
            acknowledged.add(json.loads(first)["key"])
        time.sleep(chance.uniform(0, 0.15))
        for process in processes:
            process.kill()
        for process in processes:
            output = process.communicate()[0]
            acknowledged |= {
                json.loads(line)["key"] for line in output.splitlines(keepends=True) if line.endswith("}\n")
            }
    store = open_local("store/memory.db")
    kept = document(store, "shared").data.keys()
    logged = {entry["data"]["key"] for entry in document(store, "log").data["entries"]}
    with store.reading() as reader:
        numbers = range(1, reader.counts().lessons + 1)
        lessons = {lesson.text.removeprefix("lesson ") for number in numbers if (lesson := reader.lesson(number))}
    assert len(acknowledged) >= 75
    assert (acknowledged - kept, acknowledged - logged, acknowledged - lessons) == (set(), set(), set())
    require_sound(store, tmp_path / "store")
