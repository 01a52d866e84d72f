"""Making a store smaller and putting it right: old versions, old entries, old backups; findings and their remedies."""

from keepwell.model.errors import Denied, NotFound
from keepwell.operations.category_replies import Checkup, CompactedRow, Compaction, Diagnosis
from keepwell.operations.library import Library
from keepwell.operations.upkeep import EVERYTHING
from keepwell.store.port import Reader, StoreStatus


def compact(library: Library, *, category: str | None, keep_versions: int | None, dry_run: bool) -> Compaction:
    """Remove what the bounds do not keep: of one category, or of all that this device may write and of the backups.

    The newest version of each category stays whatever is asked.
    """
    keep = library.keep_versions if keep_versions is None else keep_versions
    with library.store.reading() as reader:
        names = _names(reader, category)
    if category is not None:
        library.access.require(category)
    mine = [name for name in names if library.access.rule_for(name)[0]]
    foretold = dry_run and not library.store.status().writable
    rows = [
        _foretold(library, name, keep) if foretold else _compacted(library, name, keep, dry_run=dry_run)
        for name in mine
    ]
    days = library.keep_backup_days
    # backups are looked after as a whole
    pruned = library.store.prune_backups(older_than_days=days, dry_run=dry_run or category is not None)
    backups = (pruned.files, pruned.bytes) if category is None else (0, 0)
    skipped = tuple(name for name in names if name not in mine)
    shown = tuple(row for row in rows if row.versions or row.entries)
    return Compaction(dry_run, keep, shown, skipped, *backups)


def _names(reader: Reader, category: str | None) -> list[str]:
    if category is None:
        return [row.name for row in reader.categories(after="", limit=EVERYTHING)]
    heading = reader.heading(category)
    if heading is None or heading.name != category:
        raise NotFound(f"there is no category {category!a}.", hint="memory_list gives the names.")
    return [category]


def _compacted(library: Library, name: str, keep: int, *, dry_run: bool) -> CompactedRow:
    with library.store.writing() as writer:
        found = writer.compact(name, keep_versions=keep)
        # what would be removed is only known for certain by removing it
        if dry_run:
            writer.take_back()
    return CompactedRow(name, found.versions, found.entries)


def _foretold(library: Library, name: str, keep: int) -> CompactedRow:
    """What can be said of a store that can only be read: the versions."""
    with library.store.reading() as reader:
        found = reader.compactable(name, keep_versions=keep)
    return CompactedRow(name, found.versions, found.entries)


def doctor(library: Library, *, fix: bool) -> Checkup:
    """What is not as it should be, each with its remedy; with `fix` what is safe to repair is repaired first."""
    if fix and not library.caller.permissions.write:
        raise Denied("fix is off: this launch may not change the store.", hint="Start keepwell with --allow-write.")
    fixed = library.store.mend() if fix else ()
    findings = [Diagnosis(found.code, found.subject, found.problem, found.remedy) for found in library.store.findings()]
    findings += [
        Diagnosis("damaged", "the database", fault, "Stop every keepwell and restore the newest backup.")
        for fault in library.store.check()
    ]
    findings += _limits(library.store.status())
    return Checkup(not findings, tuple(findings), fixed)


def _limits(state: StoreStatus) -> list[Diagnosis]:
    """What the place of the store does not allow."""
    where = state.database or ""
    found = []
    if not state.writable:
        found.append(Diagnosis("read_only", where, "the store can only be read.", "Give this user write permission."))
    if state.journal_mode == "delete":
        problem = f"readers wait for writers: the rollback journal is in use ({state.file_system or 'unknown'})."
        remedy = "Keep the store on a disk of this machine, with [storage] journal_mode = wal."
        found.append(Diagnosis("journal", where, problem, remedy))
    return found
