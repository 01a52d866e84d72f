"""What each error code means to a surface: one table for exit codes."""

from typing import Final

from keepwell.model.errors import KeepwellError

EXIT_CODES: Final = {
    "internal": 1,
    "invalid": 2,
    "not_found": 3,
    "conflict": 4,
    "denied": 5,
    "busy": 6,
    "unsupported": 7,
    "corrupt": 8,
}
"""Exit status of a command by error code; 0 is success, 130 and 143 are SIGINT and SIGTERM."""


def exit_code(error: KeepwellError) -> int:
    """The exit status that stands for an error."""
    return EXIT_CODES[error.code]
