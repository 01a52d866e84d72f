"""The stdio server process: opens the store, speaks MCP until its end, and leaves nothing behind."""

import logging
import os
import threading
from typing import Final

from keepwell.config import Resolved
from keepwell.model.errors import KeepwellError
from keepwell.operations.library import Library
from keepwell.surfaces.render import fits
from keepwell.wiring import open_library

_log: Final = logging.getLogger(__name__)


def run(resolved: Resolved) -> int:
    """Serve until the client, a signal or the parent's death ends it; gives the exit status.

    Settings and the store are checked before the costly import of the SDK, so that a wrong launch fails at once.
    """
    parent = os.getppid()
    with open_library(resolved, person=False, fits=fits) as library:
        threading.Thread(target=_find_project, args=(library,), daemon=True).start()
        return _serve(library, resolved, parent)


def _serve(library: Library, resolved: Resolved, parent: int) -> int:
    # the SDK takes most of a second to import, and only a server needs it
    import anyio  # noqa: PLC0415

    from keepwell.surfaces.lifetime import Ending, serve_until_end  # noqa: PLC0415
    from keepwell.surfaces.mcp import build_server  # noqa: PLC0415
    from keepwell.surfaces.wire import open_wire  # noqa: PLC0415

    server = build_server(library, toolsets=resolved.settings.tools)

    async def serve(ending: Ending) -> None:
        async with open_wire(on_end=ending.input_ended) as (messages, answers):
            await server.run(messages, answers, server.create_initialization_options())

    async def until_end() -> int:
        return await serve_until_end(serve, on_stop=library.store.interrupt, parent=parent)

    return anyio.run(until_end)


def _find_project(library: Library) -> None:
    """Find out early which project this is, beside the import; calls that need it wait for the answer or ask again."""
    try:
        project = library.caller.project()
    except KeepwellError as error:
        _log.warning("%s %s", error.line, error.facts or "")
    else:
        _log.info("project %s", project.path)
