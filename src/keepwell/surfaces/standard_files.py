"""Standard input, output and error, made safe before anything else is opened. Imports next to nothing."""

import os
import sys
from io import FileIO, TextIOWrapper


def ensure_standard_files() -> None:
    """Open the null device on each of the descriptors 0, 1 and 2 that is closed, and give `sys` a file for it.

    Otherwise the next file to be opened, a database perhaps, would get that number, and the next warning would be
    written into it. To be called before anything else is opened.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # the lowest free number is the one that was found closed: those below it are open
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - it takes no keywords
    sys.stdin = sys.stdin or _text_file(0, "r")
    sys.stdout = sys.stdout or _text_file(1, "w")
    sys.stderr = sys.stderr or _text_file(2, "w")


def _text_file(descriptor: int, mode: str) -> TextIOWrapper:
    return TextIOWrapper(FileIO(descriptor, mode, closefd=False), encoding="utf-8", errors="backslashreplace")
