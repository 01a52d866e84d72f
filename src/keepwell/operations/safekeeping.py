"""Keeping a store safe: snapshots, their return, verifying, rebuilding, and taking in what hands have edited."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from keepwell.model import jsonform
from keepwell.model.category import check_name
from keepwell.model.change import ChangeKind
from keepwell.model.errors import Conflict, Denied, Invalid, KeepwellError, NotFound
from keepwell.operations.categories import draft
from keepwell.operations.category_replies import Diagnosis
from keepwell.operations.library import Library
from keepwell.operations.safekeeping_replies import (
    Adopted,
    AdoptedRow,
    Planned,
    PlannedRow,
    RebuiltStore,
    RestoredStore,
    SnapshotTaken,
    Verified,
)
from keepwell.store.port import Edit, Vault

PLAN_FORMAT: Final = "keepwell-adopt-plan"
_SPAN: Final = re.compile(r"([1-9]\d{0,4})([mhd])")


def snapshot(
    library: Library,
    *,
    dir: str,  # noqa: A002 - the documented name of the parameter
    with_backups: bool,
    keep: int | None,
    every: str | None,
) -> SnapshotTaken:
    """One instant of everything, verified.

    With `keep`, `dir` collects snapshots and the oldest beyond that many go; with `every` one follows the other until
    the process is stopped.
    """
    if every is not None and keep is None:
        raise Invalid("every needs keep: how many snapshots to leave.", hint="For example --every 6h --keep 28.")
    pause = None if every is None else _seconds(every)
    folder = Path(dir).expanduser().absolute()
    while True:
        taken = _take_snapshot(library, folder, with_backups=with_backups, keep=keep)
        if pause is None:
            return taken
        library.tell(f"{taken.path}: {taken.lessons} lessons, {taken.categories} categories, verified")
        library.wait(pause)


def _take_snapshot(library: Library, folder: Path, *, with_backups: bool, keep: int | None) -> SnapshotTaken:
    facts = {"version": library.version}
    taken = library.store.snapshot(folder, with_backups=with_backups, keep=keep, facts=facts)
    manifest = taken.manifest
    return SnapshotTaken(
        path=taken.path,
        categories=len(manifest["categories"]),
        lessons=manifest["counts"]["lessons"],
        with_backups=with_backups,
        verified=True,
        removed=taken.removed,
    )


def _seconds(text: str) -> int:
    parts = _SPAN.fullmatch(text)
    if parts is None:
        raise Invalid("every is no span of time.", hint="Write a number and m, h or d, such as 30m, 6h or 1d.")
    return int(parts[1]) * {"m": 60, "h": 3_600, "d": 86_400}[parts[2]]


def restore(
    vault: Vault,
    *,
    dir: str | None,  # noqa: A002 - the documented name of the parameter
    stopped: bool,
    with_forgotten: bool,
    finish: bool,
    undo: bool,
) -> RestoredStore:
    """Put a snapshot in the store's place; or finish, or undo, a restore that was interrupted."""
    if sum((dir is not None, finish, undo)) != 1:
        raise Invalid("restore takes one of: a snapshot's folder, --finish, --undo.")
    if finish:
        return RestoredStore("finished", parked=vault.finish_restore())
    if undo:
        return RestoredStore("undone", snapshot=vault.undo_restore())
    if not stopped:
        raise Denied(
            "restore replaces the whole store, so every keepwell must be stopped first.",
            hint="Close the assistants that started one, then give --stopped: your word for it.",
        )
    done = vault.restore(Path(str(dir)).expanduser().absolute(), with_forgotten=with_forgotten)
    return RestoredStore("restored", done.snapshot, done.parked, done.categories, done.with_backups)


def verify(vault: Vault) -> Verified:
    """Read and compare everything; change nothing."""
    findings = tuple(Diagnosis(found.code, found.subject, found.problem, found.remedy) for found in vault.verify())
    return Verified(healthy=not findings, findings=findings)


def rebuild(vault: Vault, *, stopped: bool, dry_run: bool) -> RebuiltStore:
    """Make the database again from its log and the files."""
    if not (stopped or dry_run):
        raise Denied(
            "rebuild replaces the database, so every keepwell must be stopped first.",
            hint="Close the assistants that started one, then give --stopped; or try it with --dry-run.",
        )
    done = vault.rebuild(dry_run=dry_run)
    return RebuiltStore(dry_run, done.changes, done.categories, done.versions, done.parked, done.problems)


def adopt(library: Library, *, plan: str | None, apply: str | None) -> Planned | Adopted:
    """Write down what hands have edited, or take in what was written down and is still so."""
    if (plan is None) == (apply is None):
        raise Invalid("adopt takes one of --plan FILE, which changes nothing, and --apply FILE.")
    return (
        _plan(library, Path(plan).expanduser()) if plan is not None else _apply(library, Path(str(apply)).expanduser())
    )


def _plan(library: Library, file: Path) -> Planned:
    with library.store.reading() as reader:
        edits = reader.edits()
    rows = tuple(
        PlannedRow(edit.name, "change" if edit.committed_hash else "create", edit.file_hash, edit.committed_hash)
        for edit in edits
        if edit.text is not None
    )
    problems = tuple(f"{edit.name}: {edit.problem}" for edit in edits if edit.text is None)
    listed = [
        {"name": row.name, "action": row.action, "file_hash": row.file_hash, "committed_hash": row.committed_hash}
        for row in rows
    ]
    text = jsonform.canonical({"format": PLAN_FORMAT, "format_version": 1, "adopt": listed})
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(text + "\n")
    except FileExistsError:
        raise Conflict(
            "plan: the file exists already; it was not touched.", hint="Name a new file.", file=file
        ) from None
    except OSError as error:
        raise Denied(f"plan: it cannot be written ({error.strerror}).", file=file) from None
    return Planned(str(file.absolute()), rows, problems)


def _apply(library: Library, file: Path) -> Adopted:
    rows = _read_plan(file)
    done, refused = [], []
    for name, file_hash, committed in rows:
        try:
            done.append(_adopt_one(library, name, file_hash, committed))
        except KeepwellError as error:
            refused.append(f"{name}: {error.sentence}")
    return Adopted(tuple(done), tuple(refused))


def _read_plan(file: Path) -> Sequence[tuple[str, str, str | None]]:
    try:
        plan: Any = jsonform.parse(file.read_text(encoding="utf-8"))
        if plan["format"] != PLAN_FORMAT:
            raise Invalid("apply: it is no plan of keepwell adopt.")
        return [(check_name(row["name"]), str(row["file_hash"]), row["committed_hash"]) for row in plan["adopt"]]
    except FileNotFoundError:
        raise NotFound("apply: there is no such file.", file=file) from None
    except OSError as error:
        raise Denied(f"apply: it cannot be read ({error.strerror}).", file=file) from None
    except (KeyError, TypeError, UnicodeDecodeError):
        raise Invalid("apply: it is no plan of keepwell adopt.", hint="Make one with --plan.") from None


def _adopt_one(library: Library, name: str, file_hash: str, committed: str | None) -> AdoptedRow:
    library.access.require(name)
    with library.store.writing() as writer:
        edit = next(iter(writer.edits(name)), None)
        _require_as_planned(edit, file_hash, committed)
        text = edit.text if edit else None
        if text is None:
            raise Conflict("its file cannot be read.")
        version = writer.append(
            draft(library, ChangeKind.CATEGORY_ADOPTED, name, text=text, reason="adopted from the file")
        )
    return AdoptedRow(name, version)


def _require_as_planned(edit: Edit | None, file_hash: str, committed: str | None) -> None:
    if edit is None or edit.file_hash != file_hash or edit.committed_hash != committed:
        raise Conflict("it is not as it was when the plan was made; it was left alone. Make a new plan.")
