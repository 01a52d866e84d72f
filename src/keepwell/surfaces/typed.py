"""How settings and parameters are typed on the command line, and what was typed as the gate and `config` take it.

Bounds are not told to click: the gate checks them, in the same words everywhere.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from keepwell.config import SETTINGS
from keepwell.model import jsonform
from keepwell.model.errors import Invalid, NotFound
from keepwell.operations.table import Choice, Flag, Integer, Listed, Object, Operation, Parameter, Records

_FLAGGED: Final = tuple(setting for setting in SETTINGS if setting.flag)
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")


def settings_options(*, hidden: bool = False) -> list[click.Parameter]:
    """The flags of the settings; hidden ones are accepted but not shown in the help."""
    return [
        click.Option(
            [str(setting.flag), setting.name],
            # False would let a value be left out
            is_flag=setting.switch or None,
            # every value is kept, so that two different ones can be told from one
            multiple=not setting.switch,
            metavar=setting.takes or None,
            help=setting.doc,
            hidden=hidden,
        )
        for setting in _FLAGGED
    ]


def json_option() -> click.Option:
    """The option that asks for JSON."""
    return click.Option(["--json", "as_json"], is_flag=True, help="Print one line of JSON.")


def settings_given(*places: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were typed, before and after a command's name, by setting name.

    `click.UsageError` where one was given twice with different values. What is not a setting is left out.
    """
    given: dict[str, Any] = {}
    for setting in _FLAGGED:
        typed = [place[setting.name] for place in places if place.get(setting.name)]
        values = set(typed) if setting.switch else {value for several in typed for value in several}
        if len(values) > 1:
            raise click.UsageError(f"{setting.flag} is given more than once, with different values.")
        given.update(dict.fromkeys([setting.name] if values else [], *values))
    return given


def options_of(operation: Operation) -> list[click.Parameter]:
    """How an operation's parameters are typed: the required ones by place, the others by name."""
    return [option for parameter in operation.parameters for option in _options_for(parameter)]


def is_typed_by_place(parameter: Parameter) -> bool:
    """Whether a parameter is typed without a name before it."""
    plain = not isinstance(parameter.kind, Flag | Records)
    return plain and (parameter.required if parameter.by_place is None else parameter.by_place)


def _options_for(parameter: Parameter) -> list[click.Parameter]:
    name, kind, told = parameter.name, parameter.kind, parameter.description
    option = "--" + name.replace("_", "-")
    if is_typed_by_place(parameter):
        several = isinstance(kind, Listed)
        count = -1 if several else 1
        needed = parameter.required
        return [click.Argument([name], nargs=count, required=needed, shell_complete=_completer(parameter))]
    match kind:
        case Flag():
            return [click.Option([option, name], is_flag=True, help=told)]
        case Records():
            return _options_for_records(option, name, kind, told)
        case Listed():
            told = f"{told} Repeatable."
            return [click.Option([option, name], multiple=True, metavar="NAME", help=told)]
        case Choice():
            words = "|".join(kind.values)
            return [click.Option([option, name], metavar=words, help=told, shell_complete=_completer(parameter))]
        case _:
            metavar = "NUMBER" if isinstance(kind, Integer) else "TEXT"
            return [click.Option([option, name], metavar=metavar, help=told)]


def _options_for_records(option: str, name: str, kind: Records, told: str) -> list[click.Parameter]:
    """Two repeatable options for small objects of one required and one optional text."""
    main, other = (field.name for field in kind.fields)
    told_from = f"The same with its {other.replace('_', ' ')} before the {main}. Repeatable."
    return [
        click.Option([option, name], multiple=True, metavar="TEXT", help=f"{told} Repeatable."),
        click.Option([f"{option}-from", f"{name}_from"], multiple=True, nargs=2, metavar="URI TEXT", help=told_from),
    ]


def _completer(
    parameter: Parameter,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    words = parameter.kind.values if isinstance(parameter.kind, Choice) else ()

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(str(word)) for word in words if word.startswith(begun)]

    return complete


def arguments_given(operation: Operation, typed: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the gate takes it; what was not typed is left out."""
    given = {parameter.name: _given(parameter, typed) for parameter in operation.parameters}
    return {name: value for name, value in given.items() if value is not None}


def _given(parameter: Parameter, typed: Mapping[str, Any]) -> Any:
    value = typed[parameter.name]
    match parameter.kind:
        case Records():
            return _records(parameter.kind, value, typed[f"{parameter.name}_from"]) or None
        case Listed():
            return value or None
        case Object():
            return _document(parameter.name, value)
        case Integer() if value and _WHOLE_NUMBER.fullmatch(value):
            return int(value)
        case _:
            # what is no number goes to the gate as it is, which says what it wants instead
            return value


def _document(name: str, typed: str) -> Any:
    """JSON as it was typed, or from the file after `@`, or from standard input for `-`."""
    try:
        if typed == "-":
            typed = sys.stdin.buffer.read().decode()
        elif typed.startswith("@"):
            typed = Path(typed[1:]).expanduser().read_text(encoding="utf-8")
        return jsonform.parse(typed.removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise Invalid(f"{name} is not in UTF-8.") from None
    except OSError as error:
        raise NotFound(f"{name}: the file cannot be read ({error.strerror}).", file=typed[1:]) from None
    except Invalid as error:
        hint = error.hint or "Type JSON, @FILE for a file's, or - for that on standard input."
        raise Invalid(f"{name}: {error.sentence}", hint=hint) from None


def _records(kind: Records, texts: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    main, other = (field.name for field in kind.fields)
    return [{main: text} for text in texts] + [{other: reference, main: text} for reference, text in pairs]
