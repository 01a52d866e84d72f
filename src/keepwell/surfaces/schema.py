"""JSON Schema of operations: closed input schemas from parameters; every reply is an object.

Only the subset that every client accepts: a plain object at the root, flat properties, no references, no alternatives.
"""

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

from keepwell.model.text import LARGEST_SAFE_INTEGER
from keepwell.operations.table import (
    Choice,
    Flag,
    Integer,
    Kind,
    Listed,
    Name,
    Object,
    Operation,
    Parameter,
    Records,
    Text,
)


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
    # that a flag is off until it is set goes without saying
    return schema | {"default": parameter.default} if parameter.default else schema


def _kind(kind: Kind) -> dict[str, Any]:
    match kind:
        case Text():
            # JSON Schema counts characters; the gate counts bytes, of which there are never fewer
            return {"type": "string", "maxLength": kind.max_bytes}
        case Integer():
            # the largest safe integer bounds every id and is not worth its length
            largest = {"maximum": kind.maximum} if kind.maximum < LARGEST_SAFE_INTEGER else {}
            return {"type": "integer", "minimum": kind.minimum, **largest}
        case Choice():
            return {"type": "string", "enum": list(kind.values)}
        case Flag():
            return {"type": "boolean"}
        case Name():
            return {"type": "string"}
        case Object():
            return {"type": "object"}
        case Listed():
            return {"type": "array", "items": _kind(kind.item)}
        case Records():
            item = _object(kind.fields)
            return {"type": "array", "items": item, "minItems": kind.minimum, "maxItems": kind.maximum}


def output_schema(result: type) -> dict[str, Any]:
    """What a tool answers with: an object. The reference pages tell its fields, which here would cost every session."""
    if not is_dataclass(result):
        raise TypeError(f"{result.__name__} is not a reply")
    return {"type": "object"}
