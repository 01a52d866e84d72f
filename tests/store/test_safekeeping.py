"""Snapshots, restores that are interrupted anywhere, verifying, adopting, rebuilding, forgetting, export and import."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ALL, PROJECT_A, PROJECT_B, Clock, world_of
from tests.store.faults import DEATH, Died, failing_disk

from keepwell.model import jsonform
from keepwell.model.access import OPEN, AccessList
from keepwell.model.errors import Busy, Conflict, Corrupt, Denied, Invalid, KeepwellError, NotFound, Unsupported
from keepwell.model.lesson import Author
from keepwell.model.scope import Project
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library
from keepwell.store.local.engine import LocalStore
from keepwell.store.local.foreign import read_foreign
from keepwell.store.local.vault import LocalVault
from keepwell.wiring import uid_maker

SEEN = [{"description": "seen it", "source_uri": "file.txt"}]


class Home:
    """A store in a folder, and a person who uses it."""

    def __init__(self, base: Path, clock: Clock) -> None:
        self.base = base
        self.clock = clock
        self.database = base / "memory.db"
        self.store: LocalStore | None = None
        self.access: AccessList = OPEN

    def open(self) -> LocalStore:
        if self.store is None:
            world = world_of(self.clock)
            self.store = LocalStore(self.database, device="laptop", world=world, new_uid=uid_maker(world))
        return self.store

    def close(self) -> None:
        if self.store:
            self.store.close()
        self.store = None

    def do(self, command: str, project: Project = PROJECT_A, **arguments: Any) -> Any:
        [operation] = [row for row in OPERATIONS if row.command == command]
        if operation.offline:
            self.close()
            vault = LocalVault(self.database, device="laptop", world=world_of(self.clock))
            defaults = {parameter.name: parameter.default for parameter in operation.parameters}
            return operation.run(vault, **defaults | arguments)
        caller = Caller(ALL, Author("person", "pi"), lambda: project, lambda _reply: True, counts_retrievals=True)
        library = Library(
            self.open(),
            caller,
            uid_maker(world_of(self.clock)),
            lambda _path: True,
            "test",
            access=self.access,
            read_foreign=read_foreign,
        )
        return library.perform(operation, arguments)

    def fill(self) -> None:
        """Lessons, reports, deliveries, documents, a log, something deleted."""
        self.do("add", text="Use pnpm here.", evidence=SEEN, reason="learned")
        self.do("supersede", id=1, text="Use npm here.", evidence=SEEN, reason="moved")
        self.do("add", PROJECT_B, text="Elsewhere.", evidence=SEEN)
        self.do("add", text="Everywhere.", evidence=SEEN, scope="global")
        self.do("archive", id=4, reason="no longer")
        self.do("feedback", memory_id=2, verdict="useful", reason="it ran")
        self.do("search", query="npm")
        for number in range(3):
            self.clock.ms += 1_000
            self.do("write", category="notes", data={"n": number, "日": "本"}, reason=f"step {number}")
            self.do("append", category="journal", data={"n": number})
        self.do("write", category="gone", data={"x": 1})
        self.do("delete", category="gone", reason="done")

    def everything(self) -> dict[str, Any]:
        """What the store says, without what is local to a device."""
        with self.open().reading() as reader:
            counts = reader.counts()
            lessons = [reader.lesson(number) for number in range(1, counts.lessons + 1)]
            return {
                "lessons": sorted(
                    (one.uid, one.text, one.status, one.archived_at, one.evidence) for one in lessons if one
                ),
                "statistics": sorted((one.uid, repr(reader.statistics(one.id))) for one in lessons if one),
                "documents": {row.name: (row.hash, row.updated_at) for row in reader.categories(after="", limit=99)},
                "versions": {
                    name: [
                        (v.hash, v.action, v.reason, v.created_at) for v in reader.versions(name, limit=99, before=None)
                    ]
                    for name in ("notes", "journal", "gone")
                },
                "changes": [(c.uid, c.stamp, c.kind, c.payload) for c in reader.changes(after=0, limit=999)],
            }


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[[str], Home]]:
    homes: list[Home] = []

    def one(name: str) -> Home:
        homes.append(Home(tmp_path / name, clock))
        return homes[-1]

    yield one
    for home in homes:
        home.close()


@pytest.fixture
def home(make: Callable[[str], Home]) -> Home:
    filled = make("home")
    filled.fill()
    return filled


def test_a_snapshot_holds_what_it_says_and_is_verified(home: Home, tmp_path: Path) -> None:
    taken = home.do("snapshot", dir=str(tmp_path / "snap"), with_backups=True)
    manifest = json.loads((tmp_path / "snap" / "manifest.json").read_bytes())
    assert (taken.categories, taken.lessons, taken.verified) == (2, 4, True)
    assert manifest["coverage"] == {"database": True, "categories": True, "backups": True}
    assert [row["name"] for row in manifest["categories"]] == ["journal", "notes"]
    assert manifest["counts"]["category_versions"] == 6
    for row in manifest["categories"]:
        data = (tmp_path / "snap" / "categories" / f"{row['name']}.json").read_bytes()
        assert jsonform.content_hash_of(data) == row["sha256"] == row["content_hash"]
    assert not list((tmp_path / "snap").glob("*-wal"))
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "snap").rglob("*")} == {0}


def test_a_snapshot_never_replaces_what_is_there(home: Home, tmp_path: Path) -> None:
    (tmp_path / "snap").mkdir()
    (tmp_path / "snap" / "mine").write_text("kept")
    with pytest.raises(Conflict, match="exists already"):
        home.do("snapshot", dir=str(tmp_path / "snap"))
    assert [path.name for path in (tmp_path / "snap").iterdir()] == ["mine"]


def test_a_folder_of_snapshots_keeps_the_newest_and_what_is_not_its_own(home: Home, tmp_path: Path) -> None:
    (tmp_path / "all" / "snapshot-of-mine").mkdir(parents=True)
    paths = []
    for _ in range(4):
        home.clock.ms += 1_000
        paths.append(home.do("snapshot", dir=str(tmp_path / "all"), keep=2).path)
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        *(Path(path).name for path in paths[2:]),
        "snapshot-of-mine",
    ]


@pytest.mark.parametrize("every", ["", "6", "h", "0h", "6x", "-1h"])
def test_a_span_that_is_none_is_refused(home: Home, tmp_path: Path, every: str) -> None:
    with pytest.raises(Invalid, match="every"):
        home.do("snapshot", dir=str(tmp_path / "all"), keep=2, every=every)
    assert not (tmp_path / "all").exists()


def test_a_restored_snapshot_is_the_store_of_then_and_the_store_of_now_is_parked(home: Home, tmp_path: Path) -> None:
    then = home.everything()
    home.do("snapshot", dir=str(tmp_path / "snap"), with_backups=True)
    home.do("write", category="notes", data={"n": 99})
    home.do("add", text="newer", evidence=SEEN)
    done = home.do("restore", dir=str(tmp_path / "snap"), stopped=True)
    assert home.everything() == then
    assert home.do("verify").findings == ()
    parked = Home(Path(done.parked), home.clock)
    assert parked.do("read", category="notes").data == {"n": 99}
    parked.close()


def test_a_restore_asks_for_the_word_that_everything_is_stopped_and_for_one_thing(home: Home, tmp_path: Path) -> None:
    home.do("snapshot", dir=str(tmp_path / "snap"))
    with pytest.raises(Denied, match="must be stopped"):
        home.do("restore", dir=str(tmp_path / "snap"))
    with pytest.raises(Invalid, match="takes one of"):
        home.do("restore", stopped=True)
    with pytest.raises(NotFound, match="no restore is under way"):
        home.do("restore", finish=True)


def test_a_restore_is_refused_while_a_process_has_the_store_open(home: Home, tmp_path: Path) -> None:
    home.do("snapshot", dir=str(tmp_path / "snap"))
    then = home.everything()
    store = home.open()
    with store.reading():
        vault = LocalVault(home.database, device="laptop", world=world_of(home.clock))
        with pytest.raises(Busy, match="still has the store open"):
            vault.restore(tmp_path / "snap", with_forgotten=False)
    assert home.everything() == then


def put(path: Path, text: str) -> None:
    path.write_text(text)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


SPOILERS: dict[str, Callable[[Path], None]] = {
    "a damaged database": lambda snap: damage(snap / "memory.db"),
    "a damaged category": lambda snap: damage(snap / "categories" / "notes.json"),
    "a missing category": lambda snap: (snap / "categories" / "notes.json").unlink(),
    "a category too many": lambda snap: put(snap / "categories" / "other.json", "{}"),
    "a damaged manifest": lambda snap: put(snap / "manifest.json", "{"),
    "a manifest of nothing": lambda snap: put(snap / "manifest.json", "{}"),
    "no manifest": lambda snap: (snap / "manifest.json").unlink(),
    "no database": lambda snap: (snap / "memory.db").unlink(),
}


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_snapshot_that_is_not_whole_is_refused_and_nothing_was_touched(
    home: Home, tmp_path: Path, spoil: str
) -> None:
    home.do("snapshot", dir=str(tmp_path / "snap"))
    then = home.everything()
    home.close()
    before = sorted(path.name for path in home.base.iterdir())
    SPOILERS[spoil](tmp_path / "snap")
    with pytest.raises((Corrupt, NotFound, Unsupported)):
        home.do("restore", dir=str(tmp_path / "snap"), stopped=True)
    assert sorted(path.name for path in home.base.iterdir()) == before
    assert home.everything() == then


@pytest.mark.parametrize("way_out", ["finish", "undo"])
def test_a_restore_that_dies_anywhere_keeps_the_store_closed_until_it_is_finished_or_undone(
    home: Home, make: Callable[[str], Home], tmp_path: Path, way_out: str
) -> None:
    home.do("snapshot", dir=str(tmp_path / "snap"), with_backups=True)
    then = home.everything()
    home.do("write", category="notes", data={"n": 99})
    now = home.everything()
    home.close()
    turn = 0
    while True:
        turn += 1
        place = tmp_path / f"try {turn}"
        shutil.copytree(home.base, place)
        mine = make(place.name)
        with failing_disk(place) as disk:
            disk.arm(turn, DEATH)
            with suppress(Died, KeepwellError):
                mine.do("restore", dir=str(tmp_path / "snap"), stopped=True)
            died = disk.dead
            disk.disarm()
        if (place / "RESTORE_IN_PROGRESS").exists():
            with pytest.raises(Unsupported, match="was interrupted"):
                mine.open()
            assert [found.code for found in mine.do("verify").findings] == ["unsupported"]
            mine.do("restore", finish=way_out == "finish", undo=way_out == "undo")
            assert mine.everything() == (then if way_out == "finish" else now), turn
        else:
            assert mine.everything() in (then, now), turn
        assert mine.do("verify").findings == (), turn
        mine.close()
        shutil.rmtree(place)
        if not died:
            break
    assert turn > 20


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_verifying_tells_damage_in_rows_files_and_versions_and_changes_nothing(home: Home) -> None:
    assert home.do("verify").healthy
    home.close()
    damaged = sqlite3.connect(home.database)
    damaged.execute("DROP TRIGGER memories_keep_content")
    damaged.execute("DROP TRIGGER change_payloads_are_final")
    damaged.execute("UPDATE memories SET text = 'changed by hand' WHERE id = 2")
    damaged.execute("UPDATE change_payloads SET body = replace(body, 'no longer', 'some other') ")
    damaged.execute("UPDATE category SET entry_count = 77 WHERE name = 'journal'")
    damaged.commit()
    damaged.close()
    (home.base / "categories" / "notes.json").write_text('{"n": 5}')
    (home.base / "categories" / "strange.json").write_text("{")
    before = contents(home.base)
    found = {finding.code for finding in home.do("verify").findings}
    assert {"damaged", "log", "digest", "edited_outside", "unknown_file"} <= found
    assert contents(home.base) == before


def test_verifying_a_store_that_others_write_to_disturbs_nobody(home: Home) -> None:
    home.open().settle()
    vault = LocalVault(home.database, device="laptop", world=world_of(home.clock))
    assert vault.verify() == ()
    with home.open().writing():
        assert vault.verify() == ()
    assert home.do("write", category="notes", data={"n": 7}).outcome == "replaced"


def test_adopting_takes_in_what_the_plan_says_and_leaves_alone_what_changed_since(home: Home, tmp_path: Path) -> None:
    files = home.base / "categories"
    (files / "notes.json").write_text('{"n": 5}')
    (files / "fresh.json").write_text('{"by": "hand"}')
    (files / "broken.json").write_text("{")
    planned = home.do("adopt", plan=str(tmp_path / "plan.json"))
    assert [(row.name, row.action) for row in planned.adopt] == [("fresh", "create"), ("notes", "change")]
    assert "broken" in planned.problems[0]
    assert home.do("list").total == 2
    (files / "fresh.json").write_text('{"by": "another hand"}')
    done = home.do("adopt", apply=str(tmp_path / "plan.json"))
    assert [row.name for row in done.adopted] == ["notes"]
    assert "fresh" in done.refused[0]
    found = home.do("read", category="notes")
    assert (found.data, found.edited_outside) == ({"n": 5}, None)
    assert home.do("versions", category="notes").versions[0].action == "adopted"
    assert home.do("adopt", apply=str(tmp_path / "plan.json")).adopted == ()


def test_a_plan_is_no_other_file(home: Home, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(Invalid, match="no plan"):
        home.do("adopt", apply=str(tmp_path / "other.json"))
    with pytest.raises(Conflict, match="exists already"):
        home.do("adopt", plan=str(tmp_path / "other.json"))


def test_a_rebuilt_database_says_what_the_old_one_said(home: Home) -> None:
    before = home.everything()
    receipt = home.do("append", category="journal", data={"n": 3}, operation_id="one")
    dry = home.do("rebuild", dry_run=True)
    assert (dry.parked, dry.problems) == (None, ())
    done = home.do("rebuild", stopped=True)
    after = home.everything()
    assert after["lessons"] == before["lessons"]
    assert after["statistics"] == before["statistics"]
    assert after["versions"]["notes"] == before["versions"]["notes"]
    assert home.do("append", category="journal", data={"n": 3}, operation_id="one").id == receipt.id
    assert home.do("verify").findings == ()
    assert (Path(done.parked) / "memory.db").exists()


def test_a_lost_database_costs_no_category_and_no_version_that_has_a_backup(home: Home) -> None:
    home.close()
    for path in home.base.glob("memory.db*"):
        path.unlink()
    done = home.do("rebuild", stopped=True)
    assert (done.changes, done.categories) == (0, 3)
    assert home.do("read", category="notes").data == {"n": 2, "日": "本"}
    assert [entry["data"]["n"] for entry in home.do("read", category="journal").data["entries"]] == [0, 1, 2]
    versions = home.do("versions", category="notes").versions
    documents = [home.do("versions", category="notes", version=row.version).data for row in versions]
    assert [document["n"] for document in documents] == [2, 1, 0]
    assert home.do("versions", category="gone").deleted_at is not None
    assert home.do("verify").findings == ()


def test_a_damaged_database_gives_back_what_can_be_read_of_it(home: Home) -> None:
    home.close()
    data = bytearray(home.database.read_bytes())
    middle = len(data) * 2 // 3
    data[middle : middle + 8192] = b"\xa5" * 8192
    home.database.write_bytes(data)
    done = home.do("rebuild", stopped=True)
    assert Path(done.parked).is_dir()
    assert home.do("read", category="notes").data == {"n": 2, "日": "本"}
    assert home.do("verify").findings == ()


def test_an_export_comes_in_whole_and_a_second_time_changes_nothing(
    home: Home, make: Callable[[str], Home], tmp_path: Path
) -> None:
    home.do("export", output=str(tmp_path / "all.jsonl"))
    other = make("other")
    first = other.do("import", source=str(tmp_path / "all.jsonl"))
    assert (first.refused, first.existing) == ((), 0)
    assert other.everything() == home.everything()
    again = other.do("import", source=str(tmp_path / "all.jsonl"))
    assert (again.added, again.existing, again.refused) == (0, first.added, ())
    assert other.everything() == home.everything()
    assert other.do("verify").findings == ()


@pytest.mark.parametrize("target", ["/dev/full", "missing/all.jsonl", "there.jsonl"])
def test_an_export_that_cannot_be_written_says_so_and_leaves_nothing(home: Home, tmp_path: Path, target: str) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises((Denied, Conflict), match="output"):
        home.do("export", output=str(tmp_path / target))
    assert (tmp_path / "there.jsonl").read_text() == "mine"
    assert not (tmp_path / "missing").exists()


def test_a_dry_import_changes_nothing(home: Home, make: Callable[[str], Home], tmp_path: Path) -> None:
    exported = home.do("export", output=str(tmp_path / "all.jsonl"))
    other = make("other")
    other.do("write", category="mine", data={"a": 1})
    before = other.everything()
    assert other.do("import", source=str(tmp_path / "all.jsonl"), dry_run=True).added == exported.changes
    assert other.everything() == before
    assert not list((other.base / "categories" / ".staged").iterdir())


def test_a_broken_line_is_told_by_its_number_and_the_others_come_in(
    home: Home, make: Callable[[str], Home], tmp_path: Path
) -> None:
    home.do("export", output=str(tmp_path / "all.jsonl"))
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    place = next(number for number, line in enumerate(lines) if "Elsewhere" in line)
    lines[place:place] = ["{", '{"type": "new"}', '{"type": "change"}']
    (tmp_path / "broken.jsonl").write_text("\n".join(lines[:-1]), encoding="utf-8")
    other = make("other")
    done = other.do("import", source=str(tmp_path / "broken.jsonl"))
    assert [line.line for line in done.refused][:3] == [place + 1, place + 2, place + 3]
    assert "cut off" in done.refused[-1].problem
    assert other.do("search", PROJECT_B, query="Elsewhere").found == 1


def test_a_forged_line_is_refused_where_the_key_is_known(home: Home, tmp_path: Path) -> None:
    home.do("export", output=str(tmp_path / "all.jsonl"))
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    [forged] = [line.replace("Elsewhere.", "Forged.") for line in lines if "Elsewhere." in line]
    scopes = [line for line in lines if '"type":"scope"' in line]
    content = "\n".join([lines[0], *scopes, forged.replace('"uid":"', '"uid":"f', 1)])
    (tmp_path / "forged.jsonl").write_text(content, encoding="utf-8")
    done = home.do("import", source=str(tmp_path / "forged.jsonl"))
    assert "digest" in done.refused[0].problem
    assert (done.added, home.do("search", PROJECT_B, query="Forged").found) == (0, 0)


def test_an_import_passes_the_same_gate_as_every_write(home: Home, make: Callable[[str], Home], tmp_path: Path) -> None:
    home.do("export", output=str(tmp_path / "all.jsonl"))
    text = (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    (tmp_path / "evil.jsonl").write_text(text.replace('"subject":"notes"', '"subject":"../notes"'), encoding="utf-8")
    other = make("other")
    other.access = AccessList("laptop", ("desk",), (), configured=True)
    with pytest.raises(Denied, match="not_authorized"):
        other.do("import", source=str(tmp_path / "all.jsonl"))
    other.access = OPEN
    done = other.do("import", source=str(tmp_path / "evil.jsonl"))
    assert len([line for line in done.refused if "subject" in line.problem]) == 3
    assert sorted(path.name for path in (other.base / "categories").glob("*.json")) == ["journal.json"]


SECRETS = ("quetzalcoatl", "xolotlproof", "tlalocreason", "mictlanreport", "tezcaold", "tezcanew", "huitzlog")


def confess(home: Home) -> None:
    text, proof, reason, report, old, new, entry = SECRETS
    home.do("add", text=f"The word is {text}.", evidence=[{"description": proof}], reason=reason)
    home.do("feedback", memory_id=5, verdict="incorrect", reason=report)
    home.do("write", category="diary", data={"s": old})
    home.do("write", category="diary", data={"s": new})
    home.do("append", category="events", data={"s": entry})


def holding(folder: Path) -> set[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {word for word in SECRETS for path in files if word.encode() in path.read_bytes() or word in path.name}


def forget_all(home: Home) -> None:
    for what in ("5", "diary", "events"):
        with pytest.raises(Denied, match="for good"):
            home.do("forget", what=what)
        assert home.do("forget", what=what, yes=True).clean


def test_what_is_forgotten_is_in_no_byte_of_any_file_and_nothing_else_is_lost(home: Home) -> None:
    confess(home)
    assert holding(home.base) == set(SECRETS)
    forget_all(home)
    assert holding(home.base) == set()
    home.close()
    assert holding(home.base) == set()
    assert home.do("verify").findings == ()
    assert home.do("get", id=2).memory.text == "Use npm here."
    assert home.do("get", id=5).memory.text == ""
    assert home.do("read", category="notes").data["n"] == 2


def test_neither_a_restore_nor_an_import_nor_a_rebuild_brings_it_back(home: Home, tmp_path: Path) -> None:
    confess(home)
    home.do("snapshot", dir=str(tmp_path / "snap"), with_backups=True)
    home.do("export", output=str(tmp_path / "all.jsonl"))
    forget_all(home)
    assert home.do("import", source=str(tmp_path / "all.jsonl")).added == 0
    assert holding(home.base) == set()
    parked = home.do("restore", dir=str(tmp_path / "snap"), stopped=True).parked
    shutil.rmtree(parked)
    assert holding(home.base) == set()
    assert home.do("verify").findings == ()
    shutil.rmtree(home.do("rebuild", stopped=True).parked)
    assert holding(home.base) == set()
    assert home.do("verify").findings == ()


def test_a_restore_brings_back_what_was_forgotten_when_it_is_told_to(home: Home, tmp_path: Path) -> None:
    confess(home)
    home.do("snapshot", dir=str(tmp_path / "snap"))
    forget_all(home)
    home.do("restore", dir=str(tmp_path / "snap"), stopped=True, with_forgotten=True)
    assert home.do("read", category="diary").data == {"s": "tezcanew"}


def test_a_forgotten_name_can_be_used_again_and_its_numbers_go_on(home: Home) -> None:
    confess(home)
    forget_all(home)
    assert home.do("write", category="diary", data={"new": 1}).outcome == "created"
    assert home.do("append", category="events", data={}).id == 1
    home.do("rebuild", stopped=True)
    assert home.do("read", category="diary").data == {"new": 1}
    assert home.do("append", category="events", data={}).id == 2


def test_a_store_of_mcp_memory_comes_in_with_its_history_and_a_second_time_changes_nothing(
    make: Callable[[str], Home], tmp_path: Path
) -> None:
    database = tmp_path / "old.db"
    old = sqlite3.connect(database)
    old.executescript(
        """
        CREATE TABLE scopes (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, project_path TEXT, created_at INTEGER);
        CREATE TABLE memories (id INTEGER PRIMARY KEY, scope_id INTEGER, text TEXT, text_hash TEXT, status TEXT,
            supersedes_id INTEGER, source_client TEXT, source_session TEXT, source_model TEXT, created_at INTEGER,
            archived_at INTEGER);
        CREATE TABLE evidence (id INTEGER PRIMARY KEY, memory_id INTEGER, description TEXT, source_uri TEXT,
            created_at INTEGER);
        CREATE TABLE events (id INTEGER PRIMARY KEY, memory_id INTEGER, action TEXT, actor TEXT, source_client TEXT,
            source_session TEXT, details_json TEXT, created_at INTEGER);
        CREATE TABLE memory_retrievals (id INTEGER PRIMARY KEY, memory_id INTEGER, request_id INTEGER, method TEXT,
            retrieved_at INTEGER);
        CREATE TABLE memory_feedback (id INTEGER PRIMARY KEY, memory_id INTEGER, verdict TEXT, reason TEXT,
            source_client TEXT, source_model TEXT, created_at INTEGER);
        INSERT INTO scopes VALUES (1, 'project', 'a', '/projects/a', 1), (2, 'global', 'global', NULL, 1);
        INSERT INTO memories VALUES (1, 1, 'Old way.', 'x', 'archived', NULL, 'pi', NULL, NULL, 100, 200),
            (2, 1, 'New way.', 'y', 'active', 1, 'pi', 's', 'm', 200, NULL),
            (3, 2, 'Gone.', 'z', 'archived', NULL, 'pi', NULL, NULL, 300, 400);
        INSERT INTO evidence VALUES (1, 1, 'saw it', 'f', 100), (2, 2, 'saw more', NULL, 200), (3, 3, 'saw', NULL, 300);
        INSERT INTO events VALUES (1, 3, 'archived', 'assistant', 'pi', NULL, '{"reason": "no use"}', 400);
        INSERT INTO memory_feedback VALUES (1, 2, 'useful', 'worked', 'pi', NULL, 500);
        INSERT INTO memory_retrievals VALUES (1, 2, 9, 'keyword', 450);
        """
    )
    old.commit()
    old.close()
    before = database.read_bytes()
    home = make("home")
    done = home.do("import", source="mcp-memory", path=str(database))
    assert (done.added, done.refused) == (5, ())
    assert home.do("import", source="mcp-memory", path=str(database)).added == 0
    assert database.read_bytes() == before
    new = home.do("get", id=2).memory
    assert (new.text, new.supersedes_id, new.created_at, new.source.session) == ("New way.", 1, 200, "s")
    assert (new.statistics.useful_count, new.statistics.retrieval_count) == (1, 1)
    assert home.do("get", id=1).memory.status == "archived"
    assert [event.reason for event in home.do("get", id=3).events] == ["no use", None]


def test_a_store_of_mcp_memory_rs_comes_in_with_its_versions_and_a_second_time_changes_nothing(
    make: Callable[[str], Home], tmp_path: Path
) -> None:
    old = tmp_path / "old"
    for folder in ("categories", "backups"):
        (old / folder).mkdir(parents=True)
    current, earlier = jsonform.canonical({"a": 2}), jsonform.canonical({"a": 1})
    (old / "categories" / "projects.json").write_text(current)
    (old / "categories" / "bad name?.json").write_text("{}")
    (old / "categories" / "broken.json").write_text("{")
    (old / "backups" / "projects.2026-01-02T03-04-05.json").write_text(earlier)
    (old / "backups" / "gone.2026-01-02T03-04-05.deleted.json").write_text("{}")
    database = sqlite3.connect(old / "memory.db")
    database.execute(
        "CREATE TABLE category_version (id INTEGER PRIMARY KEY, category_name TEXT, content_hash TEXT, diff_json TEXT, "
        "reason TEXT, actor TEXT, timestamp TEXT)"
    )
    database.execute(
        "INSERT INTO category_version VALUES (1, 'projects', ?, NULL, 'because', 'desk', "
        "'2026-02-03T04:05:06.123456789+00:00')",
        (jsonform.content_hash(current),),
    )
    database.commit()
    database.close()
    home = make("home")
    done = home.do("import", source="mcp-memory-rs", path=str(old))
    assert done.added == 4
    assert len(done.refused) == 2
    assert home.do("import", source="mcp-memory-rs", path=str(old)).added == 0
    assert home.do("read", category="projects").data == {"a": 2}
    versions = home.do("versions", category="projects").versions
    assert [row.reason for row in versions] == ["because", None]
    assert home.do("versions", category="projects", version=versions[1].version).data == {"a": 1}
    assert home.do("versions", category="gone").deleted_at is not None


@pytest.mark.parametrize(("source", "error"), [("mcp-memory", NotFound), ("mcp-memory-rs", NotFound)])
def test_a_store_that_is_not_there_is_an_error(home: Home, tmp_path: Path, source: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="path"):
        home.do("import", source=source, path=str(tmp_path / "none"))
    with pytest.raises(Invalid, match="path is missing"):
        home.do("import", source=source)
