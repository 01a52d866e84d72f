"""A store together with who is asking: what every operation works on, and the gate that all surfaces pass."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from keepwell.model.access import OPEN, AccessList
from keepwell.model.errors import Conflict, Denied, NotFound
from keepwell.model.lesson import Author, Lesson
from keepwell.model.scope import GLOBAL, Project, ScopeKind, ScopeRef
from keepwell.model.text import canonical_json
from keepwell.operations.category_replies import Appended
from keepwell.operations.replies import Written
from keepwell.operations.table import Operation, bind
from keepwell.store.port import Delivery, Foreign, Reader, Receipt, Store, Unreadable, Writer

Receipted = TypeVar("Receipted", Written, Appended)
"""The answers that a repeated operation id brings back."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a launch may do. Bound once; no argument of any call can widen it."""

    write: bool = False
    global_write: bool = False
    global_read: bool = True


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, bound at launch.

    `project` gives the launch's project or raises the reason why there is none. `fits` says whether a reply is small
    enough for this surface. `counts_retrievals` is False for a person who browses.
    """

    permissions: Permissions
    author: Author
    project: Callable[[], Project]
    fits: Callable[[object], bool]
    counts_retrievals: bool


@dataclass(frozen=True, slots=True)
class Library:
    """One store, one caller, and the few things of the outside world that operations need.

    `access` says which categories this device may write; `keep_versions` and `keep_backup_days` what `compact` keeps.
    `tell` shows how long work goes on, `wait` pauses for seconds, `read_foreign` reads another program's store.
    """

    store: Store
    caller: Caller
    new_uid: Callable[[], str]
    folder_exists: Callable[[str], bool]
    version: str
    access: AccessList = OPEN
    keep_versions: int = 100
    keep_backup_days: int = 30
    tell: Callable[[str], None] = lambda _line: None
    wait: Callable[[float], None] = lambda _seconds: None
    read_foreign: Callable[[str, Path], Iterator[Foreign | Delivery | Unreadable]] = lambda _source, _path: iter(())

    def perform(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Check permission and arguments, then do it. Errors are of the family in `model.errors`."""
        if operation.needs_write and not self.caller.permissions.write:
            raise Denied(
                f"{operation.name} is off: this launch may not change memory.",
                hint="Start keepwell with --allow-write to allow it.",
            )
        return operation.run(self, **bind(operation.parameters, arguments))

    def scope_named(self, kind: str) -> ScopeRef:
        """The launch's project scope or the global one, by the word that callers use."""
        return GLOBAL if kind == ScopeKind.GLOBAL else ScopeRef(self.caller.project())

    def require_global_read(self) -> None:
        """Raise `Denied` where the launch may not read global lessons."""
        if not self.caller.permissions.global_read:
            raise Denied(
                "global lessons are off for this launch.",
                hint="Start keepwell without --no-global-read to read them.",
            )

    def require_write_to(self, kind: ScopeKind) -> None:
        """Raise `Denied` where the launch may not change lessons of that scope."""
        if kind is ScopeKind.GLOBAL and not self.caller.permissions.global_write:
            raise Denied(
                "this launch may not change global lessons.",
                hint="Start keepwell with --allow-write --allow-global-write, or use the project scope.",
            )

    def visible_lesson(self, reader: Reader, lesson_id: int, *, name: str) -> Lesson:
        """The lesson of that id if this launch may see it; another project's is the same as none."""
        lesson = reader.lesson(lesson_id)
        if lesson is not None and self._sees(lesson):
            return lesson
        raise NotFound(
            f"{name} {lesson_id}: there is no such lesson in this project or the global scope.",
            hint="memory_search gives the ids that can be used here.",
        )

    def _sees(self, lesson: Lesson) -> bool:
        if lesson.scope.kind is ScopeKind.GLOBAL:
            self.require_global_read()
            return True
        return lesson.scope.project_path == self.caller.project().path

    def once(
        self,
        operation: str,
        *,
        scope: ScopeRef,
        operation_id: str | None,
        arguments: Mapping[str, object],
        answer: type[Receipted],
        act: Callable[[Writer], Receipted],
    ) -> Receipted:
        """Do `act` in one write transaction; with an operation id that was used before, give the first answer again.

        `Conflict` when the id was used for another operation or with other arguments.
        """
        with self.store.writing() as writer:
            if operation_id is None:
                return act(writer)
            fingerprint = writer.fingerprint(canonical_json(arguments))
            if receipt := writer.receipt(scope, operation_id):
                _require_same(receipt, operation, fingerprint)
                return replace(answer(**json.loads(receipt.result)), repeated=True)
            written = act(writer)
            writer.remember(scope, operation_id, Receipt(operation, fingerprint, canonical_json(asdict(written))))
            return written


def _require_same(receipt: Receipt, operation: str, fingerprint: str) -> None:
    key, mine = receipt.fingerprint.split(":"), fingerprint.split(":")
    # under another digest key the arguments cannot be compared; then the id alone decides
    same_arguments = key[0] != mine[0] or key == mine
    if receipt.operation != operation or not same_arguments:
        raise Conflict(
            "operation_id was used before for something else.",
            hint="Use a new operation_id for every new call, and the same one only to repeat a call unchanged.",
        )
