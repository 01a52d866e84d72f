"""Random histories: the reference engine and the local one must answer alike, and both must agree with their log."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.conftest import ALL, PROJECT_A, PROJECT_B, Clock, Uids, world_of

from keepwell.model.change import fold
from keepwell.model.errors import KeepwellError
from keepwell.model.lesson import Author, Verdict
from keepwell.model.scope import Project
from keepwell.operations import tool_named
from keepwell.operations.library import Caller, Library
from keepwell.operations.replies import Found
from keepwell.store.local.engine import LocalStore, Options
from keepwell.store.memory import MemoryStore
from keepwell.store.port import Store
from keepwell.surfaces.render import to_plain

WORDS = ["zebra", "quagga", "heron", "lynx", "otter"]
# every word once: then BM25 and the reference engine's plain counting agree on who is found
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(" ".join)
evidence = st.lists(st.fixed_dictionaries({"description": texts}), min_size=1, max_size=3)
ids = st.integers(1, 12)
scopes = st.sampled_from(["project", "global"])
operation_ids = st.none() | st.sampled_from(["op-1", "op-2", "op-3"])
projects = st.sampled_from([PROJECT_A, PROJECT_B])


class Histories(RuleBasedStateMachine):
    """One history, written to two engines with the same clock and the same uids."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        local = LocalStore(
            Path(self.folder.name) / "memory.db",
            device="laptop",
            world=world_of(self.clock),
            new_uid=Uids(),
            options=Options(synchronous="normal"),
        )
        self.stores: tuple[Store, Store] = (
            MemoryStore(device="laptop", world=world_of(self.clock), new_uid=Uids()),
            local,
        )
        self.lesson_uids = (Uids(itertools.count(1_000_000)), Uids(itertools.count(1_000_000)))
        self.wrote = False

    def perform(self, project: Project, tool: str, **arguments: Any) -> Any:
        """Do it on both engines and give the one answer."""
        given = {name: value for name, value in arguments.items() if value is not None}
        first, second = (
            self.answer(store, uids, project, tool, given)
            for store, uids in zip(self.stores, self.lesson_uids, strict=True)
        )
        assert first == second
        return first

    @staticmethod
    def answer(store: Store, uids: Uids, project: Project, tool: str, arguments: dict[str, Any]) -> Any:
        caller = Caller(ALL, Author("assistant", "pi"), lambda: project, lambda _reply: True, counts_retrievals=True)
        library = Library(store, caller, uids, lambda _path: True, "test")
        try:
            reply = library.perform(tool_named(tool), arguments)
        except KeepwellError as error:
            return error.line
        plain = to_plain(reply)
        if isinstance(reply, Found):
            # how matches are weighed is the engine's own; that they are found is not
            plain["memories"] = sorted(plain["memories"], key=lambda memory: memory["id"])
            for memory in plain["memories"]:
                del memory["score"]
        elif "events" in plain:
            for entry in (*plain["events"], *plain["feedback"]):
                del entry["id"]
        return plain

    @rule(project=projects, text=texts, evidence=evidence, scope=scopes, operation_id=operation_ids)
    def add(
        self, project: Project, text: str, evidence: list[dict[str, str]], scope: str, operation_id: str | None
    ) -> None:
        self.wrote = True
        self.perform(project, "memory_add", text=text, evidence=evidence, scope=scope, operation_id=operation_id)

    @rule(project=projects, number=ids, text=texts, evidence=evidence, operation_id=operation_ids)
    def supersede(
        self, project: Project, number: int, text: str, evidence: list[dict[str, str]], operation_id: str | None
    ) -> None:
        arguments = {"id": number, "text": text, "evidence": evidence, "operation_id": operation_id}
        self.perform(project, "memory_supersede", **arguments)

    @rule(project=projects, number=ids)
    def archive(self, project: Project, number: int) -> None:
        self.perform(project, "memory_archive", id=number, reason="no longer")

    @rule(project=projects, number=ids, verdict=st.sampled_from(list(Verdict)), operation_id=operation_ids)
    def report(self, project: Project, number: int, verdict: str, operation_id: str | None) -> None:
        self.perform(project, "memory_feedback", memory_id=number, verdict=str(verdict), operation_id=operation_id)

    @rule(project=projects, query=texts, scope=st.sampled_from(["all", "project", "global"]))
    def search(self, project: Project, query: str, scope: str) -> None:
        self.perform(project, "memory_search", query=query, scope=scope, limit=50)

    @rule(project=projects, number=ids)
    def get(self, project: Project, number: int) -> None:
        self.perform(project, "memory_get", id=number)

    @rule(step=st.integers(-3_600_000, 3_600_000))
    def time_passes_or_jumps(self, step: int) -> None:
        self.clock.ms += step

    @precondition(lambda self: self.wrote)
    @invariant()
    def the_engines_hold_the_same_log_and_the_log_explains_the_rows(self) -> None:
        logs = []
        for store in self.stores:
            with store.reading() as reader:
                changes = reader.changes(after=0, limit=10_000)
                logs.append([(c.seq, c.stamp, c.kind, c.subject, c.supersedes, c.verdict, c.payload) for c in changes])
                active: set[tuple[str, str]] = set()
                for number, state in enumerate(fold(changes).values(), start=1):
                    lesson = reader.lesson(number)
                    assert lesson
                    assert (lesson.text, lesson.status, lesson.archived_at) == (
                        state.text,
                        state.status,
                        state.archived_at,
                    )
                    if state.status == "active":
                        assert (state.scope_uid, lesson.text) not in active
                        active.add((state.scope_uid, lesson.text))
        assert logs[0] == logs[1]

    def teardown(self) -> None:
        assert self.stores[1].check() == ()
        self.stores[1].close()
        self.folder.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
