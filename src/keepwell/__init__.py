"""keepwell: a local-first memory for coding assistants.

`keepwell.open()` gives the library face: the same operations that assistants reach over MCP.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from keepwell.model.errors import (
    Busy,
    Conflict,
    Corrupt,
    Denied,
    Internal,
    Invalid,
    KeepwellError,
    NotFound,
    Unsupported,
)
from keepwell.version import VERSION

if TYPE_CHECKING:
    from keepwell.operations.library import Library

__version__ = VERSION

__all__ = [
    "Busy",
    "Conflict",
    "Corrupt",
    "Denied",
    "Internal",
    "Invalid",
    "KeepwellError",
    "NotFound",
    "Unsupported",
    "open",
    "perform",
]


@contextmanager
def open(  # noqa: A001 - keepwell.open() reads like the built-in one
    *,
    database: str | PathLike[str] | None = None,
    workspace: str | PathLike[str] | None = None,
    client: str | None = None,
) -> Iterator["Library"]:
    """Open the store of a project with a person's permissions, until the end of the block.

    What is left out comes from the environment, the configuration file and the defaults, as on the command line. With
    `client`, the name of an assistant, deliveries are counted. Raises the errors of this package.
    """
    from keepwell import config, wiring  # noqa: PLC0415 - importing keepwell alone must stay cheap

    flags = {"database": database, "workspace": workspace, "client": client}
    given = {name: str(value) for name, value in flags.items() if value is not None}
    with wiring.open_library(config.resolve(given, config.look_around()), person=True) as library:
        yield library


def perform(library: "Library", name: str, /, **arguments: Any) -> Any:
    """Do the operation of that tool or command name, for example `perform(library, "memory_search", query="tests")`.

    Gives a reply of `keepwell.operations.replies`.
    """
    from keepwell.operations import OPERATIONS  # noqa: PLC0415 - see above

    for operation in OPERATIONS:
        if name in (operation.tool, operation.command):
            return library.perform(operation, arguments)
    raise NotFound("there is no operation of that name.", hint="keepwell.operations.OPERATIONS lists them.")
