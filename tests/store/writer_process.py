"""A process that writes lessons and says which ones were acknowledged: `writer_process.py DATABASE NAME COUNT`."""

import sys
from pathlib import Path

from keepwell.model.change import ChangeKind, Draft, Payload
from keepwell.model.lesson import Author, Evidence
from keepwell.model.scope import Project, ScopeRef
from keepwell.store.local.engine import LocalStore
from keepwell.wiring import real_world, uid_maker

SCOPE = ScopeRef(Project("/projects/a", "a"))


def main(database: str, name: str, count: str) -> None:
    world = real_world()
    new_uid = uid_maker(world)
    store = LocalStore(Path(database), device=name, world=world, new_uid=new_uid)
    for number in range(int(count)):
        payload = Payload(f"lesson {name} {number}", (Evidence("seen"),))
        with store.writing() as writer:
            lesson_id = writer.append(Draft(ChangeKind.LESSON_ADDED, new_uid(), SCOPE, Author("assistant"), payload))
        sys.stdout.write(f"{lesson_id} {payload.text}\n")
        sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
