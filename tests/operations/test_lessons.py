"""Lessons from the first save to the last report, on each engine."""

import itertools
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PROJECT_A, PROJECT_B, Clock, MakeLibrary, OpenLocal

from keepwell.model.errors import Conflict, NotFound
from keepwell.model.scope import Project
from keepwell.operations import OPERATIONS, tool_named
from keepwell.operations.library import Library
from keepwell.surfaces.render import RESULT_BYTES, fits, to_json, to_plain

EVIDENCE = [{"description": "seen", "source_uri": "file.txt"}]


def do(library: Library, name: str, **arguments: Any) -> Any:
    operation = next(row for row in OPERATIONS if name in (row.tool, row.command))
    return library.perform(operation, arguments)


def add(library: Library, text: str, **more: Any) -> Any:
    return do(library, "memory_add", text=text, evidence=EVIDENCE, **more)


def found(library: Library, query: str, **more: Any) -> list[int]:
    return [memory.id for memory in do(library, "memory_search", query=query, limit=50, **more).memories]


@pytest.mark.parametrize(
    "again", ["Run npm test.", "Run  npm\ttest.", " Run npm test.\n", "Run\u00a0npm test.", "\uff32un npm test."]
)
def test_the_same_text_is_one_lesson_and_keeps_its_evidence(library: MakeLibrary, again: str) -> None:
    here = library()
    first = add(here, "Run npm test.")
    second = do(here, "memory_add", text=again, evidence=[{"description": "other"}])
    assert (first.outcome, second.outcome, second.id) == ("added", "existing", first.id)
    assert second.note
    assert [item.description for item in do(here, "memory_get", id=1).memory.evidence] == ["seen"]


def test_three_saves_of_one_text_leave_exactly_one_active_lesson(library: MakeLibrary) -> None:
    for _ in range(3):
        add(library(), "zebra")
    assert found(library(), "zebra") == [1]


def test_the_same_text_lives_in_each_project_and_globally(library: MakeLibrary) -> None:
    saved = [add(library(), "zebra"), add(library(PROJECT_B), "zebra"), add(library(), "zebra", scope="global")]
    assert [(written.id, written.outcome) for written in saved] == [(1, "added"), (2, "added"), (3, "added")]
    assert [written.project for written in saved] == [PROJECT_A.path, PROJECT_B.path, None]


def test_a_text_whose_lesson_was_archived_is_a_new_lesson(library: MakeLibrary) -> None:
    add(library(), "zebra")
    do(library(), "memory_archive", id=1)
    assert add(library(), "zebra").outcome == "added"


def test_ten_facts_on_one_subject_stay_active(library: MakeLibrary) -> None:
    for number in range(10):
        add(library(), f"The zebra service has aspect number {number}.")
    assert len(found(library(), "zebra")) == 10


def test_a_short_correction_replaces_a_long_wrong_lesson(library: MakeLibrary) -> None:
    add(library(), "The zebra cache is cleared by " + "restarting everything, " * 20)
    written = do(library(), "memory_supersede", id=1, text="zebra cache: never restart.", evidence=EVIDENCE)
    assert (written.outcome, written.id, written.supersedes_id) == ("superseded", 2, 1)
    assert found(library(), "zebra") == [2]
    old, new = do(library(), "memory_get", id=1), do(library(), "memory_get", id=2)
    assert (old.memory.status, old.memory.superseded_by) == ("archived", (2,))
    assert (new.memory.supersedes_id, new.memory.statistics.retrieval_count) == (1, 1)


def test_a_replacement_stays_in_the_scope_of_what_it_replaces(library: MakeLibrary) -> None:
    add(library(), "zebra", scope="global")
    written = do(library(), "memory_supersede", id=1, text="quagga", evidence=EVIDENCE)
    assert (written.scope, written.project) == ("global", None)
    assert found(library(PROJECT_B), "quagga") == [2]


def test_what_was_superseded_cannot_be_superseded_again_and_the_successor_is_named(library: MakeLibrary) -> None:
    add(library(), "zebra")
    do(library(), "memory_supersede", id=1, text="quagga", evidence=EVIDENCE)
    with pytest.raises(Conflict, match="superseded by lesson 2"):
        do(library(), "memory_supersede", id=1, text="heron", evidence=EVIDENCE)
    do(library(), "memory_archive", id=2)
    with pytest.raises(Conflict, match="lesson 2 is archived"):
        do(library(), "memory_supersede", id=2, text="heron", evidence=EVIDENCE)
    assert found(library(), "zebra quagga heron") == []


def test_a_replacement_may_repeat_its_own_text_with_new_evidence_but_not_anothers(library: MakeLibrary) -> None:
    add(library(), "zebra")
    add(library(), "quagga")
    with pytest.raises(Conflict, match="lesson 2 already says this"):
        do(library(), "memory_supersede", id=1, text="quagga", evidence=EVIDENCE)
    assert found(library(), "zebra") == [1]
    better = [{"description": "seen twice"}]
    assert do(library(), "memory_supersede", id=1, text="zebra", evidence=better).id == 3
    assert found(library(), "zebra") == [3]


def test_archiving_twice_is_one_event(library: MakeLibrary) -> None:
    add(library(), "zebra")
    first = do(library(), "memory_archive", id=1, reason="over")
    second = do(library(), "memory_archive", id=1, reason="again")
    assert (first.outcome, first.note, second.outcome) == ("archived", None, "archived")
    assert second.note
    assert [(e.action, e.reason) for e in do(library(), "memory_get", id=1).events] == [
        ("archived", "over"),
        ("added", None),
    ]


def test_get_shows_twenty_changes_and_ten_reports_at_most(library: MakeLibrary) -> None:
    add(library(), "zebra")
    for number in range(12):
        do(library(), "memory_feedback", memory_id=1, verdict="useful", reason=f"report {number}")
    details = do(library(), "memory_get", id=1)
    assert [report.reason for report in details.feedback] == [f"report {number}" for number in range(11, 1, -1)]
    assert details.memory.statistics.useful_count == 12
    assert len(details.events) == 1


def test_reports_are_counted_and_change_nothing_else(library: MakeLibrary) -> None:
    add(library(), "zebra")
    before = do(library(), "memory_get", id=1).memory
    for verdict in ("useful", "not_useful", "useful", "incorrect", "outdated"):
        do(library(), "memory_feedback", memory_id=1, verdict=verdict)
    after = do(library(), "memory_get", id=1).memory
    counts = after.statistics
    assert (counts.useful_count, counts.not_useful_count, counts.incorrect_count, counts.outdated_count) == (2, 1, 1, 1)
    assert (after.text, after.evidence, after.status) == (before.text, before.evidence, before.status)
    do(library(), "memory_archive", id=1)
    assert do(library(), "memory_feedback", memory_id=1, verdict="useful").outcome == "recorded"


def test_a_disputed_lesson_sinks_below_all_others_until_a_better_report(library: MakeLibrary) -> None:
    add(library(), "zebra crossing zebra crossing")
    add(library(), "a weaker match that mentions zebra once among many other words")
    assert found(library(), "zebra crossing") == [1, 2]
    written = do(library(), "memory_feedback", memory_id=1, verdict="outdated")
    assert "memory_supersede" in written.note
    assert found(library(), "zebra crossing") == [2, 1]
    assert do(library(), "memory_search", query="zebra crossing", limit=1).memories[0].id == 2
    assert do(library(), "memory_get", id=1).memory.disputed
    do(library(), "memory_feedback", memory_id=1, verdict="useful")
    assert found(library(), "zebra crossing") == [1, 2]


@pytest.mark.parametrize("name", ["memory_add", "memory_supersede", "memory_feedback"])
def test_a_repeated_operation_id_gives_the_first_answer_and_does_nothing_more(library: MakeLibrary, name: str) -> None:
    add(library(), "zebra")
    calls: dict[str, dict[str, Any]] = {
        "memory_add": {"text": "quagga", "evidence": EVIDENCE},
        "memory_supersede": {"id": 1, "text": "quagga", "evidence": EVIDENCE},
        "memory_feedback": {"memory_id": 1, "verdict": "outdated"},
    }
    first = do(library(), name, **calls[name], operation_id="op")
    with library().store.reading() as reader:
        before = reader.counts()
    second = do(library(), name, **calls[name], operation_id="op")
    with library().store.reading() as reader:
        assert reader.counts() == before
    assert (second.id, second.outcome, second.note, second.project) == (
        first.id,
        first.outcome,
        first.note,
        first.project,
    )
    assert (first.repeated, second.repeated) == (False, True)


def test_an_operation_id_cannot_be_used_for_something_else(library: MakeLibrary) -> None:
    add(library(), "zebra", operation_id="op")
    with pytest.raises(Conflict, match="operation_id was used before"):
        add(library(), "quagga", operation_id="op")
    with pytest.raises(Conflict, match="operation_id was used before"):
        do(library(), "memory_feedback", memory_id=1, verdict="useful", operation_id="op")
    assert add(library(PROJECT_B), "quagga", operation_id="op").outcome == "added"


def test_of_two_equal_calls_at_once_with_one_operation_id_one_is_the_repeat(library: MakeLibrary) -> None:
    answers = []

    def call() -> None:
        answers.append(add(library(), "zebra", operation_id="op"))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.repeated for answer in answers) == [False, True, True, True]
    assert {answer.id for answer in answers} == {1}


def test_each_delivery_counts_each_lesson_once_under_its_own_request_id(library: MakeLibrary) -> None:
    add(library(), "zebra one")
    add(library(), "zebra two")
    first = do(library(), "memory_search", query="zebra")
    second = do(library(), "memory_search", query="zebra", limit=1)
    third = do(library(), "memory_get", id=1)
    assert [reply.request_id for reply in (first, second, third)] == [1, 2, 3]
    assert {memory.id: memory.statistics.retrieval_count for memory in first.memories} == {1: 0, 2: 0}
    counted = [do(library(), "history", id=number).memory.statistics.retrieval_count for number in (1, 2)]
    assert sum(counted) == 4


def test_finding_nothing_and_browsing_are_not_deliveries(library: MakeLibrary) -> None:
    add(library(), "zebra")
    assert do(library(), "memory_search", query="nothing like it").request_id is None
    person = library(counts_retrievals=False)
    assert do(person, "memory_search", query="zebra").request_id is None
    assert do(person, "memory_get", id=1).request_id is None
    with person.store.reading() as reader:
        assert reader.counts().retrievals == 0


def test_a_delivery_that_cannot_be_counted_is_still_made_and_says_so(
    open_local: OpenLocal, library: MakeLibrary
) -> None:
    here = library()
    add(here, "zebra")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with here.store.writing():
            inside.set()
            leave.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(10)
    reply = do(here, "memory_search", query="zebra")
    leave.set()
    holder.join()
    assert [memory.id for memory in reply.memories] == [1]
    assert reply.request_id is None
    assert "not counted" in reply.warnings[0]


WORST = '\\"' * 1_000


def test_search_leaves_out_what_does_not_fit_and_counts_only_what_it_delivered(library: MakeLibrary) -> None:
    here = library(fits=fits)
    heavy = [{"description": '"' * 1_000, "source_uri": "\\" * 2_048} for _ in range(5)]
    for number in range(20):
        do(here, "memory_add", text=f"zebra {number} " + '\\"' * 900, evidence=heavy)
    reply = do(here, "memory_search", query="zebra", limit=50)
    assert reply.truncated
    assert reply.found == 20
    assert 0 < len(reply.memories) < 20
    text = to_json(to_plain(reply))
    assert len(text.encode()) + len(to_json(text).encode()) <= RESULT_BYTES
    with here.store.reading() as reader:
        assert reader.counts().retrievals == len(reply.memories)


def test_get_leaves_out_older_history_that_does_not_fit(library: MakeLibrary) -> None:
    here = library(fits=fits)
    heavy = [{"description": '"' * 1_000, "source_uri": "\\" * 2_048} for _ in range(5)]
    do(here, "memory_add", text="zebra " + WORST[:1_900], evidence=heavy, reason='"' * 1_000)
    for number in range(10):
        do(here, "memory_feedback", memory_id=1, verdict="useful", reason=f"{number}" + '"' * 999)
    details = do(here, "memory_get", id=1)
    assert details.truncated
    assert details.memory.text.startswith("zebra")
    assert len(details.feedback) < 10
    assert [report.reason[:1] for report in details.feedback] == [
        str(n) for n in range(9, 9 - len(details.feedback), -1)
    ]
    text = to_json(to_plain(details))
    assert len(text.encode()) + len(to_json(text).encode()) <= RESULT_BYTES


@pytest.mark.parametrize(
    "query",
    [
        "POL-358",
        "pre-edit",
        "a-b OR c-d",
        "std::vector",
        "https://example.test/a",
        "title:foo",
        'say "hi',
        "NEAR(a b)",
        "a* ^b",
        "{memory_text}: x",
        "-x +y (z",
        "'; DROP TABLE memories; --",
        "* * *",
        "→ ☃",
        "w " * 500,
    ],
)
def test_a_query_is_words_and_never_an_expression(library: MakeLibrary, query: str) -> None:
    add(library(), "An unrelated lesson about gardening.")
    assert do(library(), "memory_search", query=query).found == 0
    add(library(), f"See {query[:400]} zebra")
    assert do(library(), "memory_search", query="zebra " + query[:990]).memories[0].id == 2


def test_a_question_in_a_full_sentence_finds_its_lesson(open_local: OpenLocal, library: MakeLibrary) -> None:
    add(library(), "Run validation with npm test.")
    assert found(library(), "How should I be running the validation here, and a word that occurs nowhere?") == [1]


def test_a_moved_project_is_told_and_one_step_brings_its_lessons_back(library: MakeLibrary) -> None:
    add(library(), "zebra")
    moved = Project("/projects/renamed", "renamed", PROJECT_A.inode)
    there = library(moved, folder_exists=lambda path: path != PROJECT_A.path)
    reply = do(there, "memory_search", query="zebra")
    assert reply.found == 0
    assert "keepwell relink" in reply.warnings[0]
    relinked = do(there, "relink", old_path=PROJECT_A.path)
    assert (relinked.old_path, relinked.new_path, relinked.active) == (PROJECT_A.path, moved.path, 1)
    assert found(there, "zebra") == [1]


def test_relinking_a_project_that_has_not_moved_or_is_unknown_is_refused(library: MakeLibrary) -> None:
    add(library(), "zebra")
    with pytest.raises(Conflict, match="still leads to a folder"):
        do(library(PROJECT_B), "relink", old_path=PROJECT_A.path)
    with pytest.raises(NotFound, match="no project"):
        do(library(PROJECT_B, folder_exists=lambda _path: False), "relink", old_path="/nowhere")


def test_scopes_tell_which_is_this_project_and_which_is_gone(library: MakeLibrary) -> None:
    add(library(), "zebra")
    add(library(PROJECT_B), "zebra")
    rows = do(library(folder_exists=lambda path: path != PROJECT_B.path), "scopes").scopes
    assert [(row.name, row.here, row.missing) for row in rows] == [("a", True, False), ("b", False, True)]


def test_status_counts_and_checks(library: MakeLibrary) -> None:
    add(library(), "zebra")
    state = do(library(), "status", check=True)
    assert (state.totals.lessons, state.checked, state.faults, state.project) == (1, True, (), PROJECT_A.path)
    broken = do(library(NotFound("no such folder.")), "status")
    assert (broken.project, broken.project_problem) == (None, "not_found: no such folder.")


def lines(tmp_path: Path, content: bytes) -> str:
    file = tmp_path / "lessons.jsonl"
    file.write_bytes(content)
    return str(file)


GOOD = b'{"text": "%s", "evidence": [{"description": "seen"}]}'


def test_import_takes_good_lines_in_and_tells_bad_ones_by_number(library: MakeLibrary, tmp_path: Path) -> None:
    bad = [
        b"not json",
        b'{"text": "no evidence"}',
        b'{"text": "a", "text": "b", "evidence": [{"description": "x"}]}',
        b'{"text": "\\ud83d", "evidence": [{"description": "x"}]}',
        b"\xff",
        b"[1]",
    ]
    content = b"\xef\xbb\xbf" + b"\r\n".join([GOOD % b"one", *bad, b"", GOOD % b"two", GOOD % b"one"])
    file = lines(tmp_path, content)
    dry = do(library(), "import", source=file, dry_run=True)
    with library().store.reading() as reader:
        assert reader.counts().changes == 0
    done = do(library(), "import", source=file)
    assert (done.added, done.existing, [line.line for line in done.refused]) == (2, 1, [2, 3, 4, 5, 6, 7])
    assert [line.line for line in dry.refused] == [2, 3, 4, 5, 6, 7]
    again = do(library(), "import", source=file)
    assert (again.added, again.existing) == (0, 3)
    with library().store.reading() as reader:
        assert reader.counts().changes == 2


def test_import_of_a_file_in_utf_16_takes_nothing_in_and_says_why(library: MakeLibrary, tmp_path: Path) -> None:
    done = do(library(), "import", source=lines(tmp_path, (GOOD % b"one").decode().encode("utf-16")))
    assert done.added == 0
    assert "UTF-8" in done.refused[0].problem


def test_import_of_a_missing_file_is_refused(library: MakeLibrary, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="file"):
        do(library(), "import", source=str(tmp_path / "none"))


def test_upkeep_a_hundred_times_changes_no_lesson(library: MakeLibrary, clock: Clock) -> None:
    add(library(), "zebra")
    do(library(), "memory_feedback", memory_id=1, verdict="incorrect")
    with library().store.reading() as reader:
        before = reader.changes(after=0, limit=99)
    for _ in range(100):
        clock.ms += 86_400_000
        do(library(), "status", check=True)
        do(library(), "scopes")
    with library().store.reading() as reader:
        assert reader.changes(after=0, limit=99) == before


@pytest.mark.parametrize("seed", range(3))
def test_no_query_can_make_an_error(library: MakeLibrary, seed: int) -> None:
    chance = random.Random(seed)
    add(library(), "zebra")
    alphabet = [chr(code) for code in itertools.chain(range(32, 127), range(0xA1, 0x250), range(0x4E00, 0x4E20))]
    for _ in range(200):
        query = "".join(chance.choices(alphabet, k=chance.randint(1, 40)))
        if query.strip():
            do(library(), "memory_search", query=query)


def test_every_tool_is_named_once() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    assert tool_named("memory_add").command == "add"
    with pytest.raises(NotFound):
        tool_named("status")
