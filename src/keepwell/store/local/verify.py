"""Verifying a store: everything is read and compared, nothing is made, changed or locked for long.

Safe on a store that another program has open, and on one that keepwell would not open.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from keepwell.model import jsonform
from keepwell.model.errors import Corrupt, KeepwellError
from keepwell.model.text import key_fingerprint, keyed_digest
from keepwell.store.local.category_check import findings
from keepwell.store.local.category_files import CategoryFiles
from keepwell.store.local.category_index import CategoryIndex
from keepwell.store.local.category_reader import row_of
from keepwell.store.local.complaints import translated
from keepwell.store.local.guard import refuse_unfit
from keepwell.store.local.inspect import faults
from keepwell.store.local.keyfile import KEY_BYTES, key_path
from keepwell.store.local.link import Link, quiet_mode
from keepwell.store.local.restore import refuse_half_restored
from keepwell.store.port import Finding
from keepwell.store.world import World

_PAGE: Final = 1_000
_RESTORE: Final = "Stop every keepwell and restore the newest snapshot, or run keepwell rebuild."


def verify(database: Path, world: World) -> tuple[Finding, ...]:
    """What is wrong, or not as it should be; empty when all is well."""
    try:
        refuse_half_restored(database.parent)
        if not database.exists():
            raise Corrupt("there is no database.", hint="Run keepwell rebuild to make it from the files.")
        refuse_unfit(database)
        with translated(database):
            link = Link(database, quiet_mode(database), world, busy_timeout_ms=1_000)
            try:
                link.rows("read_only")
                link.rows("begin_read")
                return tuple(_all(link, database))
            finally:
                link.close()
    except KeepwellError as error:
        return (Finding(error.code, "the database", error.sentence, error.hint or _RESTORE),)


def _all(link: Link, database: Path) -> Iterator[Finding]:
    yield from (Finding("damaged", "the database", fault, _RESTORE) for fault in faults(link))
    yield from _digests(link, database)
    yield from _versions(link)
    yield from _rows_against_log(link)
    files = CategoryFiles(database.parent)
    reader = CategoryIndex(link, files, lambda name: row_of(link, name))
    yield from findings(reader, files, database)


def _digests(link: Link, database: Path) -> Iterator[Finding]:
    """Payloads that are not what their envelopes' digests were taken over."""
    try:
        key = key_path(database).read_bytes()
    except OSError:
        key = b""
    if len(key) != KEY_BYTES:
        yield Finding("key", key_path(database).name, "the key of the digests is missing or damaged.", "Restore it.")
        return
    after = 0
    while page := link.rows("payload_digests", after=after, key_id=key_fingerprint(key), limit=_PAGE):
        for row in page:
            if keyed_digest(key, row["body"].encode()) != row["digest"]:
                yield Finding("digest", f"change {row['seq']}", "its text is not what was written.", _RESTORE)
        after = page[-1]["seq"]


def _versions(link: Link) -> Iterator[Finding]:
    """Versions whose text has another hash."""
    after = 0
    while page := link.rows("version_bodies", after=after, limit=_PAGE):
        for row in page:
            text = json.loads(row["body"])["text"]
            if text is not None and jsonform.content_hash(text) != row["content_hash"]:
                yield Finding("version", f"version {row['id']}", "its document has another hash.", _RESTORE)
        after = page[-1]["id"]


def _rows_against_log(link: Link) -> Iterator[Finding]:
    """Rows that the log does not explain."""
    remedy = "Run keepwell rebuild: rows are made again from the log."
    yield from (Finding("log", row["subject"], row["fault"], remedy) for row in link.rows("log_faults"))
