"""Diagnostics: to standard error or a file, never to standard output, with secrets taken out."""

import logging
import os
import re
import sys
from pathlib import Path
from typing import Final, TextIO

LOGGER: Final = "keepwell"

_SECRETS: Final = (
    re.compile(r"(?i)(bearer\s+)[^\s\"']+"),
    re.compile(r"(?i)((?:token|secret|password|passwd|api[_-]?key)[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+"),
    re.compile(r"()\b(?:gh[pousr]_\w{20,}|sk-[\w-]{16,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"),
)


def redacted(text: str) -> str:
    """The text with tokens, keys and passwords replaced by `[redacted]`."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1[redacted]", text)
    return text


class _OneLine(logging.Formatter):
    """A record on one line without secrets; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def start(level: str, file: Path | None = None) -> None:
    """Send keepwell's log and Python's warnings to standard error, or to `file` (made with mode 0600).

    `OSError` when the file cannot be opened. Works without a standard error: then nothing is written.
    """
    handler = logging.StreamHandler(_private(file)) if file else _to_stderr()
    handler.setFormatter(_OneLine("keepwell %(levelname)s %(asctime)s %(message)s"))
    for name in (LOGGER, "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
    logging.captureWarnings(True)  # noqa: FBT003 - it takes no keywords
    # a log that cannot be written must not end up as a traceback
    logging.raiseExceptions = False


def _to_stderr() -> logging.Handler:
    # None where a launcher closed it
    stream: TextIO | None = sys.stderr
    return logging.StreamHandler(stream) if stream else logging.NullHandler()


def _private(file: Path) -> TextIO:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
