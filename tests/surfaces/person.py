"""A person at a shell: runs the real command in a project of theirs, with a home and a store of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

COMMAND: Final = (sys.executable, "-m", "keepwell")
PATIENCE_SECONDS: Final = 60
_SOURCE: Final = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True)
class Person:
    """Somebody whose everything lies below `root`."""

    root: Path
    project: Path
    added: Mapping[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.root / "home" / ".local" / "share" / "keepwell" / "memory.db"

    @property
    def environment(self) -> dict[str, str]:
        usual = {"PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "PYTHONPATH": str(_SOURCE)}
        return {**usual, **self.added}

    def type(self, *words: str | Path, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        """Run `keepwell` with these words."""
        return subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=self.project,
            env=self.environment,
            timeout=PATIENCE_SECONDS,
            check=False,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def see(self, *words: str | Path) -> str:
        """What a command prints that must succeed, and say nothing on standard error."""
        ran = self.type(*words)
        assert (ran.returncode, ran.stderr) == (0, b""), ran
        return ran.stdout.decode()

    def ask(self, *words: str | Path) -> Any:
        """The result of a command that must succeed, as JSON: one line."""
        printed = self.see(*words, "--json")
        assert printed.endswith("\n")
        assert printed.count("\n") == 1
        return json.loads(printed)

    def fail(self, *words: str | Path, status: int) -> str:
        """What a command says on standard error that must fail like this, and print no result."""
        ran = self.type(*words)
        assert (ran.returncode, ran.stdout) == (status, b""), ran
        return ran.stderr.decode()

    def add(self, text: str, *more: str) -> int:
        """Save a lesson and give its id."""
        lesson_id = self.ask("add", text, "--evidence", "seen", *more)["id"]
        assert isinstance(lesson_id, int)
        return lesson_id

    def elsewhere(self, name: str) -> "Person":
        """The same person in another project, with the same store."""
        (self.root / name).mkdir(exist_ok=True)
        return Person(self.root, self.root / name, self.added)

    def where(self, **variables: str) -> "Person":
        """The same person with these variables set."""
        return Person(self.root, self.project, {**self.added, **variables})


def settle(root: Path) -> Person:
    """A person with an empty home and an empty project."""
    for name in ("home", "project"):
        (root / name).mkdir()
    return Person(root, root / "project")
