"""What every engine must do, on each engine."""

import threading
from collections.abc import Iterator

import pytest
from tests.conftest import PROJECT_A, PROJECT_B, Clock

from keepwell.model.change import ChangeKind, Draft, Payload, fold
from keepwell.model.errors import Busy, Conflict, NotFound
from keepwell.model.lesson import Action, Author, Evidence, Lesson, Status, Verdict
from keepwell.model.query import LessonQuery
from keepwell.model.scope import GLOBAL, Project, ScopeKind, ScopeRef
from keepwell.model.text import text_hash
from keepwell.store.port import Receipt, Store

A = ScopeRef(PROJECT_A)
B = ScopeRef(PROJECT_B)
ADA = Author("assistant", "pi", "s1", "m1")


@pytest.fixture
def uids() -> Iterator[str]:
    return (f"lesson-{number}" for number in range(1, 1_000))


def added(uid: str, text: str, *, scope: ScopeRef = A, supersedes: str | None = None) -> Draft:
    payload = Payload(text, (Evidence("seen", "file.txt"), Evidence("heard")), "because")
    return Draft(ChangeKind.LESSON_ADDED, uid, scope, ADA, payload, supersedes=supersedes)


def archived(uid: str, reason: str | None = None) -> Draft:
    return Draft(ChangeKind.LESSON_ARCHIVED, uid, A, ADA, Payload(reason=reason))


def rated(uid: str, verdict: Verdict) -> Draft:
    return Draft(ChangeKind.LESSON_RATED, uid, A, ADA, Payload(reason="my report"), verdict=verdict)


def append(store: Store, *drafts: Draft) -> list[int]:
    with store.writing() as writer:
        return [writer.append(draft) for draft in drafts]


def read(store: Store, lesson_id: int) -> Lesson:
    with store.reading() as reader:
        lesson = reader.lesson(lesson_id)
    assert lesson
    return lesson


def found(store: Store, *words: str, scopes: tuple[ScopeRef, ...] = (A,)) -> list[int]:
    with store.reading() as reader:
        known = [scope.id for scope in map(reader.scope, scopes) if scope]
        return [hit.lesson_id for hit in reader.search(LessonQuery(words, tuple(known)))]


def test_an_added_lesson_reads_back_as_it_was_given(store: Store, clock: Clock) -> None:
    [number] = append(store, added("u1", "Tabs\tand\nlines 日本 😀"))
    lesson = read(store, number)
    assert lesson.text == "Tabs\tand\nlines 日本 😀"
    assert lesson.evidence == (Evidence("seen", "file.txt"), Evidence("heard"))
    assert (lesson.uid, lesson.status, lesson.author) == ("u1", Status.ACTIVE, ADA)
    assert (lesson.created_at, lesson.archived_at) == (clock.ms, None)
    assert (lesson.scope.kind, lesson.scope.project_path) == (ScopeKind.PROJECT, PROJECT_A.path)


def test_an_unknown_id_is_none(store: Store) -> None:
    with store.reading() as reader:
        assert reader.lesson(1) is None
        assert reader.events(1, limit=5) == ()
        assert reader.feedback(1, limit=5) == ()
        assert reader.statistics(1).retrieval_count == 0


def test_ids_rise_from_one_over_all_scopes(store: Store) -> None:
    assert append(store, added("u1", "one"), added("u2", "two", scope=B), added("u3", "three", scope=GLOBAL)) == [
        1,
        2,
        3,
    ]


def test_a_scope_exists_once_something_was_written_to_it(store: Store) -> None:
    with store.reading() as reader:
        assert reader.scope(A) is None
    append(store, added("u1", "one"), added("u2", "two"))
    with store.reading() as reader:
        scope = reader.scope(A)
        assert scope
        assert (scope.name, scope.folder_inode) == ("a", 11)
        assert reader.scope(B) is None


def test_summaries_count_active_and_archived_with_the_global_scope_first(store: Store) -> None:
    append(store, added("u1", "one", scope=B), added("u2", "two"), added("u3", "three", scope=GLOBAL), archived("u2"))
    with store.reading() as reader:
        summaries = [(s.scope.name, s.active, s.archived) for s in reader.scopes()]
    assert summaries == [("global", 1, 0), ("a", 0, 1), ("b", 1, 0)]


def test_superseding_archives_the_old_lesson_and_links_both(store: Store) -> None:
    old, new = append(store, added("u1", "old"), added("u2", "new", supersedes="u1"))
    assert (read(store, old).status, read(store, old).superseded_by) == (Status.ARCHIVED, (new,))
    assert (read(store, new).status, read(store, new).supersedes_id) == (Status.ACTIVE, old)


def test_a_lesson_may_be_superseded_by_the_same_text(store: Store) -> None:
    old, new = append(store, added("u1", "same"), added("u2", "same", supersedes="u1"))
    assert [read(store, number).status for number in (old, new)] == [Status.ARCHIVED, Status.ACTIVE]


@pytest.mark.parametrize("second", [archived("u1"), added("u3", "newer", supersedes="u1"), archived("unknown")])
def test_what_is_not_active_cannot_be_archived_and_nothing_is_left_behind(store: Store, second: Draft) -> None:
    append(store, added("u1", "old"), added("u2", "new", supersedes="u1"))
    with pytest.raises(Conflict):
        append(store, added("u9", "in the same transaction"), second)
    with store.reading() as reader:
        assert reader.counts().lessons == 2
        assert reader.counts().changes == 2


def test_a_report_on_an_unknown_lesson_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        append(store, rated("unknown", Verdict.USEFUL))


def test_the_active_lesson_of_a_text_is_found_in_its_scope_only(store: Store) -> None:
    [number] = append(store, added("u1", "Same  text"))
    append(store, added("u2", "other", scope=B))
    with store.reading() as reader:
        scope_a, scope_b = reader.scope(A), reader.scope(B)
        assert scope_a
        assert scope_b
        hit = reader.active_lesson(scope_a, text_hash("Same text"))
        assert hit
        assert hit.id == number
        assert reader.active_lesson(scope_b, text_hash("Same text")) is None
    append(store, archived("u1"))
    with store.reading() as reader:
        assert reader.active_lesson(scope_a, text_hash("Same text")) is None


def test_statistics_are_counted_from_deliveries_and_reports(store: Store, clock: Clock) -> None:
    [number] = append(store, added("u1", "one"))
    clock.ms += 1_000
    with store.writing() as writer:
        writer.record_retrievals((number,), method="keyword")
        writer.record_retrievals((number,), method="get")
    clock.ms += 1_000
    append(store, rated("u1", Verdict.USEFUL), rated("u1", Verdict.USEFUL), rated("u1", Verdict.OUTDATED))
    with store.reading() as reader:
        counted = reader.statistics(number)
    assert (counted.retrieval_count, counted.useful_count, counted.outdated_count) == (2, 2, 1)
    assert (counted.not_useful_count, counted.incorrect_count) == (0, 0)
    assert (counted.last_retrieved_at, counted.last_feedback_at) == (clock.ms - 1_000, clock.ms)
    assert counted.last_verdict is Verdict.OUTDATED
    assert counted.disputed


def test_request_ids_rise_and_are_shared_by_the_lessons_of_one_delivery(store: Store) -> None:
    numbers = tuple(append(store, added("u1", "one"), added("u2", "two")))
    with store.writing() as writer:
        assert writer.record_retrievals(numbers, method="keyword") == 1
        assert writer.record_retrievals(numbers, method="keyword") == 2
    with store.reading() as reader:
        assert reader.counts().retrievals == 4


def test_events_come_newest_first_and_tell_what_happened(store: Store) -> None:
    old, new = append(store, added("u1", "old"), added("u2", "new", supersedes="u1"))
    append(store, archived("u2", "gone"))
    with store.reading() as reader:
        told_old = [(e.action, e.successor_id, e.reason) for e in reader.events(old, limit=9)]
        told_new = [(e.action, e.reason) for e in reader.events(new, limit=9)]
        newest = reader.events(new, limit=1)
    assert told_old == [(Action.SUPERSEDED, new, "because"), (Action.ADDED, None, "because")]
    assert told_new == [(Action.ARCHIVED, "gone"), (Action.ADDED, "because")]
    assert [event.action for event in newest] == [Action.ARCHIVED]


def test_reports_come_newest_first_within_the_limit(store: Store) -> None:
    [number] = append(store, added("u1", "one"))
    append(store, rated("u1", Verdict.USEFUL), rated("u1", Verdict.INCORRECT), rated("u1", Verdict.NOT_USEFUL))
    with store.reading() as reader:
        reports = reader.feedback(number, limit=2)
    assert [report.verdict for report in reports] == [Verdict.NOT_USEFUL, Verdict.INCORRECT]
    assert reports[0].reason == "my report"


def test_search_finds_active_lessons_of_the_asked_scopes_by_any_word(store: Store) -> None:
    append(store, added("u1", "zebra crossing"), added("u2", "zebra finch", scope=B), added("u3", "quagga"))
    append(store, added("u4", "zebra archived"), archived("u4"))
    assert found(store, "zebra") == [1]
    assert set(found(store, "zebra", scopes=(A, B))) == {1, 2}
    assert set(found(store, "ZEBRA", "quagga")) == {1, 3}
    assert found(store, "nowhere") == []
    assert found(store, "zebra", scopes=(GLOBAL,)) == []


def test_search_finds_words_of_the_evidence_below_words_of_the_text(store: Store) -> None:
    with store.writing() as writer:
        payload = Payload("other words here", (Evidence("zebra seen today"),))
        writer.append(Draft(ChangeKind.LESSON_ADDED, "u1", A, ADA, payload))
        payload = Payload("zebra words here", (Evidence("other seen today"),))
        writer.append(Draft(ChangeKind.LESSON_ADDED, "u2", A, ADA, payload))
    assert found(store, "zebra") == [2, 1]


def test_equal_matches_come_newest_first_within_the_limit(store: Store) -> None:
    append(store, *(added(f"u{n}", f"zebra{n} zebra") for n in range(5)))
    assert found(store, "zebra") == [5, 4, 3, 2, 1]
    with store.reading() as reader:
        scope = reader.scope(A)
        assert scope
        assert len(reader.search(LessonQuery(("zebra",), (scope.id,), limit=2))) == 2


def test_a_receipt_is_found_by_its_scope_and_operation_id_only(store: Store) -> None:
    receipt = Receipt("memory_add", "key:digest", '{"id":1}')
    with store.writing() as writer:
        writer.remember(A, "op-1", receipt)
    with store.reading() as reader:
        assert reader.receipt(A, "op-1") == receipt
        assert reader.receipt(A, "op-2") is None
        assert reader.receipt(B, "op-1") is None
        assert reader.receipt(GLOBAL, "op-1") is None


def test_the_log_holds_every_change_in_order_and_folds_to_the_rows(store: Store) -> None:
    append(store, added("u1", "old"), added("u2", "new", supersedes="u1"), rated("u2", Verdict.USEFUL), archived("u2"))
    with store.reading() as reader:
        changes = reader.changes(after=0, limit=99)
        assert [change.seq for change in changes] == [1, 2, 3, 4]
        assert [change.seq for change in reader.changes(after=2, limit=1)] == [3]
    state = fold(changes)
    for number, uid in ((1, "u1"), (2, "u2")):
        lesson = read(store, number)
        assert (state[uid].text, state[uid].status, state[uid].evidence) == (
            lesson.text,
            lesson.status,
            lesson.evidence,
        )
        assert state[uid].archived_at == lesson.archived_at


def test_stamps_rise_even_when_the_clock_goes_back(store: Store, clock: Clock) -> None:
    append(store, added("u1", "one"))
    clock.ms -= 3_600_000
    append(store, added("u2", "two"), added("u3", "three"))
    clock.ms += 7_200_000
    append(store, added("u4", "four"))
    with store.reading() as reader:
        stamps = [change.stamp for change in reader.changes(after=0, limit=9)]
    assert stamps == sorted(set(stamps))
    assert [stamp.counter for stamp in stamps] == [0, 1, 2, 0]
    assert {stamp.device for stamp in stamps} == {"laptop"}


def test_a_digest_is_the_same_for_the_same_text_and_does_not_hold_it(store: Store) -> None:
    append(store, added("u1", "secret words", scope=A), added("u2", "secret words", scope=B), added("u3", "others"))
    with store.reading() as reader:
        first, second, third = (change.digest for change in reader.changes(after=0, limit=9))
        assert reader.fingerprint("x") == reader.fingerprint("x") != reader.fingerprint("y")
    assert first == second != third
    assert len(first) == 64


def test_a_block_that_raises_leaves_nothing_behind(store: Store) -> None:
    append(store, added("u1", "kept"))

    class Fault(Exception):
        pass

    def fail_half_way() -> None:
        with store.writing() as writer:
            writer.append(added("u2", "lost"))
            writer.remember(A, "op-1", Receipt("memory_add", "f", "{}"))
            writer.record_retrievals((1,), method="get")
            raise Fault

    with pytest.raises(Fault):
        fail_half_way()
    with store.reading() as reader:
        assert (reader.counts().lessons, reader.counts().retrievals) == (1, 0)
        assert reader.receipt(A, "op-1") is None
    assert append(store, added("u3", "after")) == [2]


def test_a_writer_sees_what_it_wrote_and_a_reader_keeps_its_instant(store: Store) -> None:
    append(store, added("u1", "one"))
    with store.reading() as reader:
        before = reader.counts().lessons
        with store.writing() as writer:
            writer.append(added("u2", "two"))
            assert writer.counts().lessons == before + 1
        assert reader.counts().lessons == before
    with store.reading() as reader:
        assert reader.counts().lessons == before + 1


def test_writers_take_turns_and_one_without_patience_is_told_that_the_store_is_busy(store: Store) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing():
            inside.set()
            leave.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(10)
    try:
        with pytest.raises(Busy), store.writing(patience_ms=50):
            pass
        with store.reading() as reader:
            assert reader.counts().lessons == 0
    finally:
        leave.set()
        holder.join()
    assert append(store, added("u1", "after")) == [1]


def test_after_an_interrupt_a_write_is_refused_as_busy(store: Store) -> None:
    store.interrupt()
    with pytest.raises(Busy), store.writing():
        pass


def test_a_moved_project_is_recognised_by_its_folder_and_can_be_relinked(store: Store) -> None:
    append(store, added("u1", "one"))
    moved = Project("/elsewhere/a2", "a2", PROJECT_A.inode)
    with store.writing() as writer:
        scope = writer.moved_scope(moved)
        assert scope
        assert writer.moved_scope(Project("/elsewhere/x", "x", 99)) is None
        assert writer.moved_scope(PROJECT_A) is None
        writer.relink(scope, moved)
    assert read(store, 1).scope.project_path == "/elsewhere/a2"
    with store.reading() as reader:
        assert reader.scope(A) is None


def test_a_project_cannot_be_relinked_onto_one_that_has_lessons(store: Store) -> None:
    append(store, added("u1", "one"), added("u2", "two", scope=B))
    with store.writing() as writer:
        scope = writer.scope(A)
        assert scope
        with pytest.raises(Conflict):
            writer.relink(scope, PROJECT_B)
    assert read(store, 1).scope.project_path == PROJECT_A.path


def test_a_whole_store_has_no_faults_and_says_how_it_runs(store: Store) -> None:
    append(store, added("u1", "one"), archived("u1"))
    assert store.check() == ()
    status = store.status()
    assert status.engine == store.capabilities.name
    assert (status.counts.lessons, status.counts.active_lessons, status.counts.changes) == (1, 0, 2)
