"""Faults that reading a whole database finds."""

import apsw

from keepwell.store.local.link import Link


def faults(link: Link) -> tuple[str, ...]:
    """What is wrong with the file, its references, or its full-text index; empty when all is well."""
    integrity = [row["integrity_check"] for row in link.rows("integrity")]
    found = [] if integrity == ["ok"] else [f"database file: {line}" for line in integrity]
    found += [f"reference: a row of {row['table']} points nowhere" for row in link.rows("foreign_key_faults")]
    found += [row["fault"] for row in link.rows("index_faults")]
    try:
        link.rows("documents_self_check")
    except apsw.CorruptError:
        found.append("full-text index of categories: it does not agree with its rows")
    except apsw.ReadOnlyError:
        # FTS5 checks itself by a statement that looks like a write
        pass
    return tuple(found)
