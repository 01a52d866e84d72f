"""Writing lessons: add, supersede, archive, and report on them."""

from collections.abc import Sequence
from typing import Any

from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Conflict
from keepwell.model.lesson import Evidence, Lesson, Status, Verdict
from keepwell.model.scope import GLOBAL, Project, Scope, ScopeKind, ScopeRef
from keepwell.model.text import text_hash
from keepwell.operations.library import Library
from keepwell.operations.replies import Written
from keepwell.store.port import Writer


def add(
    library: Library,
    *,
    text: str,
    evidence: Sequence[dict[str, Any]],
    scope: str,
    reason: str | None,
    operation_id: str | None,
) -> Written:
    """Save a lesson; an active one with the same normalised text is reused as it is."""
    library.require_write_to(ScopeKind(scope))
    target = library.scope_named(scope)

    def act(writer: Writer) -> Written:
        known = writer.scope(target)
        if known and (existing := writer.active_lesson(known, text_hash(text))):
            note = "The same text is remembered already; it keeps its evidence and yours was not added."
            return _written(existing.id, "existing", target, note=note)
        lesson_id = writer.append(_added(library, target, text=text, evidence=evidence, reason=reason))
        return _written(lesson_id, "added", target)

    return library.once(
        "memory_add",
        scope=target,
        operation_id=operation_id,
        arguments={"text": text, "evidence": evidence, "reason": reason},
        answer=Written,
        act=act,
    )


def supersede(
    library: Library,
    *,
    id: int,  # noqa: A002 - the documented name of the parameter
    text: str,
    evidence: Sequence[dict[str, Any]],
    reason: str | None,
    operation_id: str | None,
) -> Written:
    """Archive a lesson and put its replacement in the same scope, in one step."""
    target = _scope_to_change(library, id, name="id")

    def act(writer: Writer) -> Written:
        old = library.visible_lesson(writer, id, name="id")
        _require_active(old)
        twin = writer.active_lesson(old.scope, text_hash(text))
        if twin and twin.id != old.id:
            raise Conflict(
                f"lesson {twin.id} already says this.",
                hint=f"Archive lesson {old.id} instead, or word the replacement differently.",
            )
        draft = _added(library, target, text=text, evidence=evidence, reason=reason, supersedes=old.uid)
        return _written(writer.append(draft), "superseded", target, supersedes_id=old.id)

    return library.once(
        "memory_supersede",
        scope=target,
        operation_id=operation_id,
        arguments={"id": id, "text": text, "evidence": evidence, "reason": reason},
        answer=Written,
        act=act,
    )


def archive(
    library: Library,
    *,
    id: int,  # noqa: A002 - the documented name of the parameter
    reason: str | None,
) -> Written:
    """Take a lesson out of search; its record and history stay."""
    target = _scope_to_change(library, id, name="id")

    def act(writer: Writer) -> Written:
        lesson = library.visible_lesson(writer, id, name="id")
        if lesson.status is Status.ARCHIVED:
            return _written(lesson.id, "archived", target, note="It was archived before; nothing changed.")
        writer.append(_draft(library, ChangeKind.LESSON_ARCHIVED, lesson.uid, target, Payload(reason=reason)))
        return _written(lesson.id, "archived", target)

    return library.once("memory_archive", scope=target, operation_id=None, arguments={}, answer=Written, act=act)


def give_feedback(
    library: Library, *, memory_id: int, verdict: str, reason: str | None, operation_id: str | None
) -> Written:
    """Append one report on a lesson, active or archived; the lesson itself does not change."""
    target = _scope_of(library, memory_id, name="memory_id")

    def act(writer: Writer) -> Written:
        lesson = library.visible_lesson(writer, memory_id, name="memory_id")
        draft = _draft(
            library,
            ChangeKind.LESSON_RATED,
            lesson.uid,
            target,
            Payload(reason=reason),
            verdict=Verdict(verdict),
        )
        writer.append(draft)
        return _written(lesson.id, "recorded", target, note=_advice(lesson, draft.verdict))

    return library.once(
        "memory_feedback",
        scope=target,
        operation_id=operation_id,
        arguments={"memory_id": memory_id, "verdict": verdict, "reason": reason},
        answer=Written,
        act=act,
    )


def _advice(lesson: Lesson, verdict: Verdict | None) -> str | None:
    if verdict in (Verdict.INCORRECT, Verdict.OUTDATED) and lesson.status is Status.ACTIVE:
        return f"If you know what holds now, replace it: memory_supersede with id {lesson.id}."
    return None


def _scope_to_change(library: Library, lesson_id: int, *, name: str) -> ScopeRef:
    scope = _scope_of(library, lesson_id, name=name)
    library.require_write_to(scope.kind)
    return scope


def _scope_of(library: Library, lesson_id: int, *, name: str) -> ScopeRef:
    with library.store.reading() as reader:
        return _reference(library.visible_lesson(reader, lesson_id, name=name).scope)


def _reference(scope: Scope) -> ScopeRef:
    if scope.project_path is None:
        return GLOBAL
    return ScopeRef(Project(scope.project_path, scope.name, scope.folder_inode))


def _require_active(lesson: Lesson) -> None:
    if lesson.status is Status.ACTIVE:
        return
    if lesson.superseded_by:
        successor = lesson.superseded_by[-1]
        raise Conflict(
            f"lesson {lesson.id} was superseded by lesson {successor} already.",
            hint=f"Read lesson {successor} and supersede that one if it is still wrong.",
        )
    raise Conflict(f"lesson {lesson.id} is archived.", hint="Add the new text as a lesson of its own with memory_add.")


def _added(
    library: Library,
    scope: ScopeRef,
    *,
    text: str,
    evidence: Sequence[dict[str, Any]],
    reason: str | None,
    supersedes: str | None = None,
) -> Draft:
    payload = Payload(text, tuple(Evidence(**item) for item in evidence), reason)
    kind = ChangeKind.LESSON_ADDED
    return _draft(library, kind, library.new_uid(), scope, payload, supersedes=supersedes)


def _draft(
    library: Library,
    kind: ChangeKind,
    subject: str,
    scope: ScopeRef,
    payload: Payload,
    *,
    supersedes: str | None = None,
    verdict: Verdict | None = None,
) -> Draft:
    return Draft(kind, subject, scope, library.caller.author, payload, supersedes=supersedes, verdict=verdict)


def _written(
    lesson_id: int, outcome: str, scope: ScopeRef, *, supersedes_id: int | None = None, note: str | None = None
) -> Written:
    path = scope.project.path if scope.project else None
    return Written(lesson_id, outcome, scope.kind, path, supersedes_id=supersedes_id, note=note)
