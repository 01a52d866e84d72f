"""The shape of the operations table: what a row says, and how arguments are held against it.

Every surface binds arguments here, so that one rule for a parameter holds at every entry point.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from keepwell.model.category import check_name
from keepwell.model.errors import Invalid
from keepwell.model.text import check_text


class Effect(StrEnum):
    """What an operation does to the store. Reading may still count a delivery."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Text:
    """Text of 1 to `max_bytes` bytes in UTF-8."""

    max_bytes: int


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds, both included."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Records:
    """A list of small objects with the given fields."""

    fields: "tuple[Parameter, ...]"
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Name:
    """A category's name, by the one rule of `model.category.check_name`."""


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object of any content."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of names or of words, none twice."""

    item: "Name | Choice"
    maximum: int


Kind = Text | Integer | Choice | Flag | Records | Name | Object | Listed


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named argument. One that is not required takes `default` when it is left out.

    `by_place` says how it is typed on the command line, if not as most: the required ones by place.
    """

    name: str
    kind: Kind
    description: str
    required: bool = True
    default: Any = None
    by_place: bool | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """Arguments that can be tried as they stand, and what they are for."""

    purpose: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing the product can do.

    `tool` is its name for models (None: it is for people only), `command` its word on the command line (None: for
    models only). `needs_write` marks what `--allow-write` opens, `counts_delivery` a reading that writes telemetry.
    `idempotent`: doing it again changes nothing more. `offline`: it works on a store that is not open, a
    `store.port.Vault`, instead of a library.
    """

    tool: str | None
    command: str | None
    toolset: str
    title: str
    summary: str
    effect: Effect
    run: Callable[..., Any]
    result: type
    parameters: tuple[Parameter, ...] = ()
    needs_write: bool = False
    counts_delivery: bool = False
    offline: bool = False
    idempotent: bool = False
    examples: tuple[Example, ...] = ()

    @property
    def name(self) -> str:
        """The name that errors and logs use."""
        return self.tool or self.command or self.title


_JSON_NAMES: Final = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "an object",
    type(None): "null",
}


def bind(parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter's value, defaults filled in; `Invalid` names the parameter that breaks a rule."""
    return _bind(parameters, arguments, where="")


def _bind(parameters: tuple[Parameter, ...], arguments: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    known = [parameter.name for parameter in parameters]
    for name in arguments:
        if name not in known:
            raise Invalid(
                f"{where}{_shown(name)} is not a parameter.",
                hint=f"It takes {', '.join(known)}." if known else "It takes no parameters.",
            )
    return {parameter.name: _value(parameter, arguments, where=where) for parameter in parameters}


def _value(parameter: Parameter, arguments: Mapping[str, Any], *, where: str) -> Any:
    name = where + parameter.name
    if parameter.name not in arguments:
        if parameter.required:
            raise Invalid(f"{name} is missing.", hint=f"{name}: {parameter.description}")
        return parameter.default
    return _checked(name, parameter.kind, arguments[parameter.name])


def _checked(name: str, kind: Kind, value: Any) -> Any:
    match kind:
        case Text():
            return check_text(name, _typed(name, value, str), max_bytes=kind.max_bytes)
        case Integer():
            return _integer(name, kind, value)
        case Choice():
            return _choice(name, kind, value)
        case Flag():
            return _typed(name, value, bool)
        case Records():
            return _records(name, kind, value)
        case Name():
            return check_name(_typed(name, value, str), parameter=name)
        case Object():
            return _typed(name, value, dict)
        case Listed():
            return _listed(name, kind, value)


def _typed(name: str, value: Any, wanted: type) -> Any:
    # bool is an int to Python but not to JSON
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise Invalid(f"{name} must be {_JSON_NAMES[wanted]}, not {_JSON_NAMES.get(type(value), 'another type')}.")
    return value


def _integer(name: str, kind: Integer, value: Any) -> int:
    # JSON Schema counts 1.0 as an integer; some clients write whole numbers that way
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number: int = _typed(name, value, int)
    if not kind.minimum <= number <= kind.maximum:
        raise Invalid(f"{name} must be an integer from {kind.minimum} to {kind.maximum}.")
    return number


def _choice(name: str, kind: Choice, value: Any) -> str:
    word: str = _typed(name, value, str)
    if word not in kind.values:
        raise Invalid(f"{name} must be one of {', '.join(kind.values)}.")
    return word


def _listed(name: str, kind: Listed, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name} must be an array of strings, not {_JSON_NAMES.get(type(value), 'another type')}.")
    if not 1 <= len(value) <= kind.maximum:
        raise Invalid(f"{name} takes 1 to {kind.maximum} strings, not {len(value)}.")
    # what is named twice is meant once
    return list(dict.fromkeys(_checked(f"{name}[{index}]", kind.item, item) for index, item in enumerate(value)))


def _records(name: str, kind: Records, value: Any) -> list[dict[str, Any]]:
    fields = ", ".join(f'"{field.name}": "…"' for field in kind.fields if field.required)
    if not isinstance(value, list | tuple):
        found = _JSON_NAMES.get(type(value), "another type")
        raise Invalid(f"{name} must be an array of objects, not {found}.", hint=f"For example [{{{fields}}}].")
    if not kind.minimum <= len(value) <= kind.maximum:
        raise Invalid(
            f"{name} takes {kind.minimum} to {kind.maximum} objects, not {len(value)}.",
            hint=f"For example [{{{fields}}}].",
        )
    return [_record(f"{name}[{index}]", kind, item, example=fields) for index, item in enumerate(value)]


def _record(name: str, kind: Records, item: Any, *, example: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        found = _JSON_NAMES.get(type(item), "another type")
        raise Invalid(f"{name} must be an object, not {found}.", hint=f"For example {{{example}}}.")
    return _bind(kind.fields, item, where=f"{name}.")


def _shown(name: object) -> str:
    """An unknown name as it may appear in an error: short, on one line, nothing that could not be sent."""
    return ascii(str(name)[:40])
