"""A process whose children die at each call of a step in turn: `crash_process.py TEMPLATE FOLDER STEP`.

For each turn, from 1, it copies the store TEMPLATE to FOLDER/<turn> and forks a child that does the step there and is
killed by SIGKILL where it is about to make the call of that number that changes the disk. For each child it prints a
line: whether the step was acknowledged, and at which call the child died. The last child outlives its step.

A step is JSON: the commands with their arguments, and what else is to be the case.
"""

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepwell.model.lesson import Author
from keepwell.model.scope import Project
from keepwell.operations import OPERATIONS
from keepwell.operations.library import Caller, Library, Permissions
from keepwell.store.local.engine import LocalStore
from keepwell.store.local.link import Link
from keepwell.wiring import real_world, uid_maker

COMMANDS = {row.command: row for row in OPERATIONS}
WRITING = os.O_WRONLY | os.O_RDWR


def main(template: str, folder: str, step: str) -> None:
    turn, died = 0, True
    while died:
        turn += 1
        base = Path(folder) / str(turn)
        shutil.copytree(template, base)
        died = follow(base, turn, json.loads(step))


def follow(base: Path, turn: int, step: dict[str, Any]) -> bool:
    """Fork a child and tell what became of it; says whether it died at its call."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        live(base, turn, step, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read().splitlines()
    _, status = os.waitpid(child, 0)
    died = os.WIFSIGNALED(status)
    assert died or os.WEXITSTATUS(status) == 0, said
    sys.stdout.write(json.dumps({"turn": turn, "acknowledged": "acknowledged" in said, "at": said[-1]}) + "\n")
    sys.stdout.flush()
    return died


def live(base: Path, turn: int, step: dict[str, Any], told: int) -> None:
    """Do the step, to the end or to the call."""
    status = 1
    try:
        world = real_world()
        new_uid = uid_maker(world)
        store = LocalStore(base / "memory.db", device="laptop", world=world, new_uid=new_uid)
        Death(base, turn, told, torn=step.get("torn", False), links=step.get("links", True)).arm()
        for command, arguments in step["commands"]:
            if command == "settle":
                store.settle()
            else:
                library_over(store).perform(COMMANDS[command], arguments)
        os.write(told, b"acknowledged\n")
        status = 0
    finally:
        # nothing is closed: a process that is killed closes nothing either
        os._exit(status)


def library_over(store: LocalStore) -> Library:
    caller = Caller(
        Permissions(write=True, global_write=True, global_read=True),
        Author("assistant", "pi"),
        lambda: Project("/projects/a", "a"),
        lambda _reply: True,
        counts_retrievals=False,
    )
    return Library(store, caller, uid_maker(real_world()), lambda _path: True, "test")


@dataclass
class Death:
    """Counts the calls that change the store's folder; the process dies at one of them, before it has any effect."""

    base: Path
    turn: int
    told: int
    torn: bool
    links: bool
    calls: int = 0

    def call(self, name: str, path: object) -> None:
        """One call is about to be made."""
        self.calls += 1
        os.write(self.told, f"{name} {os.path.relpath(str(path), self.base)}\n".encode())
        if self.calls < self.turn:
            return
        file = Path(str(path))
        if self.torn and name == "fsync" and file.is_file():
            os.truncate(file, file.stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

    def patched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `os` that counts."""

        def one(*args: Any, **options: Any) -> Any:
            path = os.path.realpath(f"/proc/self/fd/{args[0]}") if name == "fsync" else args[0]
            if str(path).startswith(str(self.base)) and (name != "open" or args[1] & WRITING):
                self.call(name, path)
            if name == "link" and not self.links:
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
            return real(*args, **options)

        return one

    def arm(self) -> None:
        """Let the functions count from now on, and the commit."""
        for name in ("open", "fsync", "link", "replace", "rename", "unlink", "mkdir", "rmdir"):
            setattr(os, name, self.patched(name, getattr(os, name)))
        run_patiently = Link.run_patiently

        def run(link: Link, name: str) -> None:
            if name == "commit":
                self.call("before the commit", self.base)
            run_patiently(link, name)
            if name == "commit":
                self.call("after the commit", self.base)

        setattr(Link, "run_patiently", run)  # noqa: B010 - the type checker does not let a method be assigned


if __name__ == "__main__":
    main(*sys.argv[1:])
