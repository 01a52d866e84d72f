"""Random histories of categories and logs: the local engine answers as the reference engine does."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.conftest import ALL, PROJECT_A, Clock, Uids, world_of

from keepwell.model.errors import KeepwellError
from keepwell.model.lesson import Author
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library
from keepwell.store.local.engine import LocalStore
from keepwell.store.memory import MemoryStore
from keepwell.store.port import Store
from keepwell.surfaces.render import to_plain

names = st.sampled_from(["notes", "Notes", "log", "x"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["zebra", "quagga", "", "é"]) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
numbers = st.integers(1, 12)
guesses = st.sampled_from([None, None, None, "absent", "newest", "old"])
COMMANDS = {row.command: row for row in OPERATIONS}


class CategoryHistories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.base = Path(self.folder.name)
        self.clock = Clock()
        world = world_of(self.clock)
        self.stores: tuple[Store, ...] = (
            MemoryStore(device="laptop", world=world, new_uid=Uids()),
            LocalStore(self.base / "memory.db", device="laptop", world=world, new_uid=Uids()),
        )
        self.hashes: list[str] = ["0" * 64]
        self.given: dict[str, int] = {}

    def do(self, command: str, **arguments: Any) -> Any:
        given = {name: value for name, value in arguments.items() if value is not None}
        first, second = (self.answer(store, command, given) for store in self.stores)
        assert first == second
        return first

    def answer(self, store: Store, command: str, arguments: dict[str, Any]) -> Any:
        caller = Caller(ALL, Author("assistant", "pi"), lambda: PROJECT_A, lambda _reply: True, counts_retrievals=False)
        library = Library(store, caller, Uids(), lambda _path: True, "test")
        try:
            plain = to_plain(library.perform(COMMANDS[command], arguments))
        except KeepwellError as error:
            return error.line
        for hit in plain.get("memories", []):
            del hit["score"]
        if "memories" in plain:
            # how matches are weighed is the engine's own; which documents are found is not
            plain["memories"] = sorted({(hit["category"], hit.get("entry_id")) for hit in plain["memories"]}, key=str)
        return plain

    def expected(self, guess: str | None) -> str | None:
        """A hash to expect: none, that of nothing, the newest that was seen, or an old one."""
        return {None: None, "absent": "absent", "newest": self.hashes[-1], "old": self.hashes[0]}[guess]

    @rule(name=names, data=documents, merge=st.booleans(), guess=guesses)
    def write(self, name: str, data: dict[str, Any], merge: bool, guess: str | None) -> None:
        expected = self.expected(guess)
        saved = self.do("write", category=name, data=data, merge=merge, expected_hash=expected)
        if isinstance(saved, dict):
            self.hashes.append(saved["hash"])

    @rule(name=names, data=documents, count=st.none() | st.integers(1, 3), days=st.none() | st.integers(1, 2))
    def append(self, name: str, data: dict[str, Any], count: int | None, days: int | None) -> None:
        appended = self.do("append", category=name, data=data, max_entries=count, max_age_days=days)
        if isinstance(appended, dict):
            assert appended["id"] == self.given.get(name, 0)
            self.given[name] = appended["id"] + 1

    @rule(name=names, guess=guesses)
    def delete(self, name: str, guess: str | None) -> None:
        self.do("delete", category=name, expected_hash=self.expected(guess))

    @rule(name=names, version=numbers, guess=guesses)
    def revert(self, name: str, version: int, guess: str | None) -> None:
        self.do("revert", category=name, version=version, expected_hash=self.expected(guess))

    @rule(name=names, guess=st.none() | st.sampled_from(["a", "a,_kind"]), entries=st.none() | st.integers(1, 2))
    def read(self, name: str, guess: str | None, entries: int | None) -> None:
        self.do("read", category=name, fields=guess, entries=entries)

    @rule(wanted=st.lists(names, min_size=1, max_size=4), budget=st.integers(100, 300))
    def context(self, wanted: list[str], budget: int) -> None:
        self.do("context", categories=wanted, budget_tokens=budget)

    @rule(after=names, limit=st.integers(1, 3))
    def list_a_page(self, after: str, limit: int) -> None:
        self.do("list", after=after, limit=limit)

    @rule(name=names, days=st.integers(-2, 2))
    def search_within(self, name: str, days: int) -> None:
        at = datetime.fromtimestamp(self.clock.ms / 1000 + days * 86_400, tz=UTC)
        self.do("search", query="zebra quagga", limit=50, category=name)
        self.do("search", query="zebra quagga", limit=50, updated_before=at.date().isoformat())
        self.do("search", query="zebra quagga", limit=50, updated_after=at.isoformat())

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.do("forget", what=name, yes=True)

    @rule(name=names, version=st.none() | numbers, against=st.none() | numbers)
    def history(self, name: str, version: int | None, against: int | None) -> None:
        self.do("versions", category=name, version=version, against=against)

    @rule(name=names, data=st.data())
    def delta(self, name: str, data: st.DataObject) -> None:
        self.do("delta", category=name, since_hash=data.draw(st.sampled_from(self.hashes)))

    @rule(query=st.sampled_from(["zebra", "quagga zebra", "a", "é"]), kinds=st.none() | st.just(["log"]))
    def search(self, query: str, kinds: list[str] | None) -> None:
        self.do("search", query=query, limit=50, kinds=kinds)

    @rule(step=st.integers(-3_600_000, 172_800_000))
    def time_passes_or_jumps(self, step: int) -> None:
        self.clock.ms += step

    @rule()
    def the_local_store_is_closed_and_opened_again(self) -> None:
        self.stores[1].close()
        self.stores = (
            self.stores[0],
            LocalStore(
                self.base / "memory.db",
                device="laptop",
                world=world_of(self.clock),
                new_uid=self.stores[1]._new_uid,  # type: ignore[attr-defined]
            ),
        )

    @invariant()
    def both_list_and_read_the_same_and_nothing_was_edited(self) -> None:
        listed = self.do("list")
        if isinstance(listed, str):
            return
        for row in listed["categories"]:
            read = self.do("read", category=row["name"])
            assert read["hash"] == row["hash"]
            assert "edited_outside" not in read
            if read["kind"] == "log":
                self.the_bounds_of_a_log_hold(row["name"], read["data"])

    def the_bounds_of_a_log_hold(self, name: str, document: dict[str, Any]) -> None:
        ids = [entry["id"] for entry in document["entries"]]
        assert ids == sorted(set(ids))
        assert [entry["ts"] for entry in document["entries"]] == sorted(entry["ts"] for entry in document["entries"])
        assert len(ids) <= document["_retention"]["max_entries"]
        with self.stores[0].reading() as reader:
            heading = reader.heading(name)
        assert heading
        assert max(ids, default=-1) < heading.next_entry_id
        # numbers are given out once, whatever became of the log in between
        assert heading.next_entry_id == self.given.get(name, 0)

    def teardown(self) -> None:
        self.stores[1].settle()
        assert self.stores[1].check() == ()
        assert [found for found in self.stores[1].findings() if found.code != "disk"] == []
        with self.stores[1].reading() as reader:
            for category in reader.categories(after="", limit=99):
                document = reader.document(category.name)
                assert document
                written = (self.base / "categories" / f"{category.name}.json").read_text(encoding="utf-8")
                assert written == document.text
                assert json.loads(written) == document.data
        self.stores[1].close()
        self.folder.cleanup()


TestCategoryHistories = CategoryHistories.TestCase
TestCategoryHistories.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
