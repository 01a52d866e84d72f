"""From rows to the values of the model."""

import json
from typing import Any

from keepwell.model.change import Change, ChangeKind, Payload, Stamp
from keepwell.model.lesson import Action, Author, Event, Feedback, Verdict
from keepwell.model.scope import Scope, ScopeKind
from keepwell.store.local.link import Row


def to_scope(row: Row, *, prefix: str = "") -> Scope:
    """A scope; with a prefix from a joined row, whose id, uid and created_at carry it."""
    return Scope(
        id=row[f"{prefix}id"],
        uid=row[f"{prefix}uid"],
        kind=ScopeKind(row["kind"]),
        name=row["name"],
        project_path=row["project_path"],
        folder_inode=row["folder_inode"],
        created_at=row[f"{prefix}created_at"],
    )


def to_author(row: Row, *, actor: str = "source_actor") -> Author:
    """Who wrote a row; `actor` names the column that says so."""
    return Author(row[actor], row["source_client"], row["source_session"], row["source_model"])


def to_event(row: Row) -> Event:
    """An event with the details that were kept as JSON."""
    details: dict[str, Any] = json.loads(row["details_json"])
    return Event(
        id=row["id"],
        action=Action(row["action"]),
        author=to_author(row, actor="actor"),
        reason=details.get("reason"),
        successor_id=details.get("superseded_by"),
        created_at=row["created_at"],
    )


def to_feedback(row: Row) -> Feedback:
    """A report."""
    return Feedback(row["id"], Verdict(row["verdict"]), row["reason"], to_author(row), row["created_at"])


def to_change(row: Row) -> Change:
    """A change of the log; one whose payload was erased has none."""
    return Change(
        seq=row["seq"],
        uid=row["uid"],
        stamp=Stamp(row["ms"], row["counter"], row["device"]),
        kind=ChangeKind(row["kind"]),
        subject=row["subject"],
        scope_uid=row["scope_uid"],
        author=Author(row["actor"], row["client"], row["session"], row["model"]),
        supersedes=row["supersedes"],
        verdict=Verdict(row["verdict"]) if row["verdict"] else None,
        digest=row["digest"],
        key_id=row["key_id"],
        payload=Payload.from_dict(json.loads(row["body"])) if row["body"] is not None else None,
    )
