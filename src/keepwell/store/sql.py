"""Named statements from `.sql` files: the only place where SQL text enters the program."""

import re
from functools import cache
from importlib import resources
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements(*files: str) -> dict[str, str]:
    """Every named statement of the given files (paths below `keepwell/store`).

    A statement starts at a line `-- name: NAME` and ends at the next one. A name that stands twice is a fault.
    """
    found: dict[str, str] = {}
    for file in files:
        text = resources.files("keepwell.store").joinpath(file).read_text(encoding="utf-8")
        pieces = _NAME.split(text)
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in found:
                raise ValueError(f"statement {name} stands twice in {', '.join(files)}")
            found[name] = body.strip()
    return found
