"""Looking after a store: what is in it, whether it is whole, copies, and projects whose folder moved."""

from pathlib import Path
from typing import Final

from keepwell.model.category import merkle_root
from keepwell.model.errors import Conflict, KeepwellError, NotFound
from keepwell.model.scope import ScopeKind, ScopeSummary
from keepwell.operations.library import Library
from keepwell.operations.recall import describe, happening
from keepwell.operations.replies import (
    STORED_DATA,
    BackedUp,
    Details,
    Relinked,
    ScopeRow,
    Scopes,
    State,
)
from keepwell.store.port import Reader

EVERYTHING: Final = 1_000_000_000


def status(library: Library, *, check: bool) -> State:
    """Where the store is, how it runs and what is in it; with `check` everything is read and compared."""
    state = library.store.status()
    project, problem = _project(library)
    with library.store.reading() as reader:
        live = reader.categories(after="", limit=EVERYTHING)
        dirty = reader.dirty()
    return State(
        version=library.version,
        engine=state.engine,
        database=state.database,
        writable=state.writable,
        schema_version=state.schema_version,
        journal_mode=state.journal_mode,
        synchronous=state.synchronous,
        file_system=state.file_system,
        database_bytes=state.database_bytes,
        wal_bytes=state.wal_bytes,
        categories_dir=state.categories_dir,
        backups_dir=state.backups_dir,
        free_bytes=state.free_bytes,
        device=library.access.device,
        manifest_hash=merkle_root((category.name, category.hash) for category in live),
        dirty=dirty,
        project=project,
        project_problem=problem,
        totals=state.counts,
        checked=check,
        faults=library.store.check() if check else (),
    )


def _project(library: Library) -> tuple[str | None, str | None]:
    try:
        return library.caller.project().path, None
    except KeepwellError as error:
        return None, error.line


def scopes(library: Library) -> Scopes:
    """Every project that has lessons, and the global scope."""
    here, _ = _project(library)
    with library.store.reading() as reader:
        return Scopes(tuple(_scope_row(library, summary, here) for summary in reader.scopes()))


def _scope_row(library: Library, summary: ScopeSummary, here: str | None) -> ScopeRow:
    scope = summary.scope
    path = scope.project_path
    return ScopeRow(
        id=scope.id,
        kind=scope.kind,
        name=scope.name,
        path=path,
        active=summary.active,
        archived=summary.archived,
        here=path is not None and path == here,
        missing=path is not None and not library.folder_exists(path),
        created_at=scope.created_at,
    )


def relink(library: Library, *, old_path: str) -> Relinked:
    """Let the lessons recorded under a path that is gone belong to this launch's project."""
    project = library.caller.project()
    if library.folder_exists(old_path):
        raise Conflict(
            "old_path still leads to a folder, so that project has not moved.",
            hint="Name the path that the project had before it moved; keepwell scopes lists them.",
        )
    with library.store.writing() as writer:
        summary = _project_at(writer, old_path)
        writer.relink(summary.scope, project)
    return Relinked(summary.scope.id, old_path, project.path, summary.active)


def _project_at(reader: Reader, path: str) -> ScopeSummary:
    for summary in reader.scopes():
        if summary.scope.kind is ScopeKind.PROJECT and summary.scope.project_path == path:
            return summary
    raise NotFound("old_path: no project is recorded under it.", hint="keepwell scopes lists the recorded paths.")


def history(
    library: Library,
    *,
    id: int,  # noqa: A002 - the documented name of the parameter
) -> Details:
    """Every change of one lesson, newest first; not counted as a delivery."""
    with library.store.reading() as reader:
        lesson = library.visible_lesson(reader, id, name="id")
        events = tuple(map(happening, reader.events(id, limit=EVERYTHING)))
        return Details(STORED_DATA, lesson.scope.project_path, describe(reader, lesson), events, feedback=())


def backup(library: Library, *, output: str) -> BackedUp:
    """A verified copy of one instant, taken while servers run."""
    target = Path(output).expanduser().absolute()
    counts = library.store.backup(target)
    return BackedUp(str(target), target.stat().st_size, verified=True, totals=counts)
