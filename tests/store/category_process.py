"""A process that writes categories and says what was acknowledged: `category_process.py DATABASE NAME WHAT COUNT`.

WHAT is `merge` (a key of its own into one category), `append` (to one log), `flip` (one of two documents in turn),
`churn` (a category made and deleted in turn), or `mixed` (everything that a person does).
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from keepwell.model.errors import NotFound
from keepwell.model.lesson import Author
from keepwell.model.scope import Project
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library, Permissions
from keepwell.store.local.engine import LocalStore
from keepwell.wiring import real_world, uid_maker

COMMANDS = {row.command: row for row in OPERATIONS}


def main(database: str, name: str, what: str, count: str) -> None:
    world = real_world()
    new_uid = uid_maker(world)
    store = LocalStore(Path(database), device=name, world=world, new_uid=new_uid)
    author = Author("assistant", name)
    project = Project("/projects/a", "a")
    caller = Caller(Permissions(write=True), author, lambda: project, lambda _reply: True, counts_retrievals=True)
    library = Library(store, caller, new_uid, lambda _path: True, "test")

    def do(command: str, **arguments: Any) -> Any:
        return library.perform(COMMANDS[command], arguments)

    for number in range(int(count)):
        key = f"{name}-{number}"
        said: dict[str, Any] = {"key": key}
        if what == "merge":
            do("write", category="shared", data={key: number}, merge=True)
        elif what == "append":
            said["id"] = do("append", category="log", data={"key": key}, max_entries=100_000).id
        elif what == "flip":
            do("write", category="flip", data={"side": number % 2})
        elif what == "churn":
            do("write", category="churn", data={"key": key})
            # another process may have been faster
            with suppress(NotFound):
                do("delete", category="churn")
        else:
            mixed(do, key, number, Path(database).parent)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    store.close()


def mixed(do: Any, key: str, number: int, base: Path) -> None:
    do("write", category="shared", data={key: "x" * 500}, merge=True)
    do("append", category="log", data={"key": key}, max_entries=100_000)
    do("add", text=f"lesson {key}", evidence=[{"description": "seen"}])
    do("search", query=key)
    if number % 5 == 1:
        do("compact", keep_versions=20)
    if number % 7 == 1:
        do("snapshot", dir=str(base.parent / "snapshots"), keep=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
