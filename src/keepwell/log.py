"""Diagnostics: to standard error or a file, never to standard output; one line each, with secrets taken out."""

import logging
import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

_NAMES: Final = r"(?:token|secret|password|passwd|passphrase|credentials?|api[_-]?key|access[_-]?key|private[_-]?key)"
_FORMS: Final = (
    r"gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|npm_\w{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
_SECRETS: Final = (
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?i)\b(bearer\s+|basic\s+(?=[\w+/=-]{12}))[^\s\"',;]+"),
    re.compile(rf"(?i)({_NAMES}[\"']?\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&]+)"),
    re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://)[^\s/@]+@"),
    re.compile(rf"()\b(?:{_FORMS})"),
)
_UNFIT_FOR_A_LINE: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def redacted(text: str) -> str:
    """The text with tokens, keys and passwords, as far as their form shows them, replaced by `[redacted]`."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1[redacted]", text)
    return text


class _OneLine(logging.Formatter):
    """A record on one line: time in UTC, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        parts = [record.getMessage()]
        if record.exc_info:
            parts.append(self.formatException(record.exc_info))
        # redacted before its line ends are escaped: a key may stand on several lines
        text = redacted("\n".join(parts))
        return f"{moment}Z {record.levelname.lower()} {record.name}: {_UNFIT_FOR_A_LINE.sub(_escaped, text)}"


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


class _Diagnostics(logging.StreamHandler[TextIO]):
    """A handler whose failures disturb nobody: the reader of standard error may be gone, or the disk full."""

    def __init__(self, file: Path | None) -> None:
        # standard error is None where a launcher closed it
        standard: TextIO | None = sys.stderr
        self._own = _private(file or Path(os.devnull)) if file or not standard else None
        super().__init__(self._own or standard)
        self.setFormatter(_OneLine())

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name is logging's
        return

    def close(self) -> None:
        if self._own:
            with suppress(OSError):
                self._own.close()
        super().close()


def start(level: str, file: Path | None = None) -> None:
    """Send the log and Python's warnings to standard error, or to the end of `file` (made with mode 0600).

    `level` holds for keepwell's own records: error, warning, info or debug; of other packages' only warnings and errors
    are told. May be called again, and then replaces what it did before. `OSError` when the file cannot be opened. With
    no standard error nothing is written.
    """
    handler = _Diagnostics(file)
    stop()
    # at the root, so that what other packages warn about is redacted and kept to one line, too
    logging.getLogger().addHandler(handler)
    logging.getLogger("keepwell").setLevel(level.upper())
    logging.captureWarnings(True)  # noqa: FBT003 - it takes no keywords


def stop() -> None:
    """Take back what `start` did and close its file."""
    root = logging.getLogger()
    for handler in [other for other in root.handlers if isinstance(other, _Diagnostics)]:
        root.removeHandler(handler)
        handler.close()
    logging.getLogger("keepwell").setLevel(logging.NOTSET)
    logging.captureWarnings(False)  # noqa: FBT003 - it takes no keywords


def _private(file: Path) -> TextIO:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
