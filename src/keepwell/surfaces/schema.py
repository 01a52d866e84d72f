"""JSON Schema of operations: closed input schemas from parameters, shallow output schemas from reply types.

Only the subset that every client accepts: a plain object at the root, flat properties, no references, no alternatives.
"""

import types
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from keepwell.operations.table import Choice, Flag, Integer, Kind, Operation, Parameter, Records, Text

_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def input_schema(operation: Operation) -> dict[str, Any]:
    """What a tool takes: a closed object."""
    return _object(operation.parameters)


def _object(parameters: Sequence[Parameter]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in parameters},
        "additionalProperties": False,
    }
    if required := [parameter.name for parameter in parameters if parameter.required]:
        schema["required"] = required
    return schema


def _property(parameter: Parameter) -> dict[str, Any]:
    schema = _kind(parameter.kind) | {"description": parameter.description}
    return schema if parameter.default is None else schema | {"default": parameter.default}


def _kind(kind: Kind) -> dict[str, Any]:
    match kind:
        case Text():
            # JSON Schema counts characters; the gate counts bytes, of which there are never fewer
            return {"type": "string", "minLength": 1, "maxLength": kind.max_bytes}
        case Integer():
            return {"type": "integer", "minimum": kind.minimum, "maximum": kind.maximum}
        case Choice():
            return {"type": "string", "enum": list(kind.values)}
        case Flag():
            return {"type": "boolean"}
        case Records():
            item = _object(kind.fields)
            return {"type": "array", "items": item, "minItems": kind.minimum, "maxItems": kind.maximum}


def output_schema(result: type) -> dict[str, Any]:
    """What a tool answers with: the reply's fields one level deep."""
    if not is_dataclass(result):
        raise TypeError(f"{result.__name__} is not a reply")
    hints = get_type_hints(result)
    required = [
        field.name
        for field in fields(result)
        if field.default is MISSING and field.default_factory is MISSING and not _optional(hints[field.name])
    ]
    properties = {field.name: {"type": _type_name(field.name, hints[field.name])} for field in fields(result)}
    return {"type": "object", "properties": properties, "required": required}


def _optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _type_name(name: str, hint: Any) -> str:
    if name.endswith("_at"):
        return "string"
    if _optional(hint):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        return "array"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "string"
    return _SCALARS.get(hint, "object")
