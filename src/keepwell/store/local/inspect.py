"""Faults that reading a whole database finds."""

from keepwell.store.local.link import Link


def faults(link: Link) -> tuple[str, ...]:
    """What is wrong with the file, its references, or its full-text index; empty when all is well."""
    integrity = [row["integrity_check"] for row in link.rows("integrity")]
    found = [] if integrity == ["ok"] else [f"database file: {line}" for line in integrity]
    found += [f"reference: a row of {row['table']} points nowhere" for row in link.rows("foreign_key_faults")]
    found += [row["fault"] for row in link.rows("index_faults")]
    return tuple(found)
