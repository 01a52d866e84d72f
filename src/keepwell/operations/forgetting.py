"""Erasing for good what must not be remembered: for a person at the terminal, never for a model."""

from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.errors import Denied, NotFound
from keepwell.model.scope import GLOBAL, Project, ScopeRef
from keepwell.operations.library import Library
from keepwell.operations.safekeeping_replies import Forgotten
from keepwell.store.port import Reader


def forget(library: Library, *, what: str, category: bool, yes: bool) -> Forgotten:
    """Erase the texts of a lesson, by id, or of a category, by name: rows, index, versions, backups, free pages."""
    with library.store.reading() as reader:
        draft, told = _drafted(library, reader, what, category=category)
    if not yes:
        raise Denied(
            f"{told} would be erased for good, with its whole history; nothing was changed.",
            hint="Give --yes to do it. Snapshots, backups and other machines keep their copies.",
        )
    with library.store.writing() as writer:
        writer.append(draft)
    clean = library.store.scrub()
    note = (
        "Nothing of it is left in the database and its files. Snapshots, parked stores and exports keep their copies."
        if clean
        else "A running keepwell still reads the old pages: stop it, or run this again later, to clear them too."
    )
    return Forgotten(told, clean, note)


def _drafted(library: Library, reader: Reader, what: str, *, category: bool) -> tuple[Draft, str]:
    author = library.caller.author
    if what.isdecimal() and not category:
        lesson = library.visible_lesson(reader, int(what), name="what")
        scope = lesson.scope
        target = ScopeRef(Project(scope.project_path, scope.name, scope.folder_inode)) if scope.project_path else GLOBAL
        library.require_write_to(target.kind)
        return Draft(ChangeKind.LESSON_FORGOTTEN, lesson.uid, target, author, Payload()), f"lesson {lesson.id}"
    heading = reader.heading(what)
    if heading is None or heading.name != what:
        raise NotFound(f"what: there is no category {what!a}.", hint="keepwell list names them; a lesson has an id.")
    library.access.require(what)
    # numbers of entries are never used again, not even after this
    payload = Payload(text=str(heading.next_entry_id))
    return Draft(ChangeKind.CATEGORY_FORGOTTEN, what, None, author, payload), f"category {what}"
