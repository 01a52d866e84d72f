"""Changes as JSON objects: how they leave a store and come into another one. Unknown members are passed over."""

from collections.abc import Mapping
from typing import Any, Final

from keepwell.model.change import Change, ChangeKind, Payload, Stamp
from keepwell.model.errors import Invalid
from keepwell.model.lesson import Author, Verdict
from keepwell.model.scope import Scope, ScopeKind

FORMAT: Final = "keepwell-export"
FORMAT_VERSION: Final = 1


def change_record(change: Change) -> dict[str, Any]:
    """A change as an object; `payload` is null where the text was erased or not kept."""
    payload = change.payload
    return {
        "type": "change",
        "uid": change.uid,
        "ms": change.stamp.ms,
        "counter": change.stamp.counter,
        "device": change.stamp.device,
        "kind": change.kind.value,
        "subject": change.subject,
        "scope": change.scope_uid,
        "actor": change.author.actor,
        "client": change.author.client,
        "session": change.author.session,
        "model": change.author.model,
        "supersedes": change.supersedes,
        "verdict": change.verdict.value if change.verdict else None,
        "digest": change.digest,
        "key_id": change.key_id,
        "payload": payload.to_dict() if payload else None,
    }


def to_change(record: Mapping[str, Any]) -> Change:
    """The change that `change_record` wrote; `Invalid` names what is missing or of another type."""
    payload = record.get("payload")
    if not (payload is None or isinstance(payload, dict)):
        raise Invalid("payload must be an object or null.")
    try:
        return Change(
            seq=0,
            uid=_text(record, "uid"),
            stamp=Stamp(_number(record, "ms"), _number(record, "counter"), _text(record, "device")),
            kind=ChangeKind(_text(record, "kind")),
            subject=_text(record, "subject"),
            scope_uid=_optional(record, "scope"),
            author=Author(
                _text(record, "actor"),
                _text(record, "client"),
                _optional(record, "session"),
                _optional(record, "model"),
            ),
            supersedes=_optional(record, "supersedes"),
            verdict=Verdict(verdict) if (verdict := _optional(record, "verdict")) else None,
            digest=_text(record, "digest"),
            key_id=_text(record, "key_id"),
            payload=None if payload is None else Payload.from_dict({**Payload().to_dict(), **payload}),
        )
    except (ValueError, KeyError, TypeError, AssertionError):
        raise Invalid("it is no change that this keepwell knows.") from None


def scope_record(scope: Scope) -> dict[str, Any]:
    """A scope as an object."""
    return {
        "type": "scope",
        "uid": scope.uid,
        "kind": scope.kind.value,
        "name": scope.name,
        "path": scope.project_path,
        "created_at": scope.created_at,
    }


def to_scope(record: Mapping[str, Any]) -> Scope:
    """The scope that `scope_record` wrote; its folder is not known elsewhere."""
    try:
        kind = ScopeKind(_text(record, "kind"))
    except ValueError:
        raise Invalid("kind must be project or global.") from None
    path = _optional(record, "path")
    if (kind is ScopeKind.PROJECT) != bool(path):
        raise Invalid("a project has a path, and the global scope has none.")
    return Scope(0, _text(record, "uid"), kind, _text(record, "name"), path, None, _number(record, "created_at"))


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise Invalid(f"{name} must be text.")
    return value


def _optional(record: Mapping[str, Any], name: str) -> str | None:
    return None if record.get(name) is None else _text(record, name)


def _number(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Invalid(f"{name} must be a whole number.")
    return value
