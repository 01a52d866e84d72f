"""The command line: one command for each operation of the table, and the few that are about the program itself."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from keepwell import config, log
from keepwell.model.errors import Internal, Invalid, KeepwellError
from keepwell.operations import OPERATIONS
from keepwell.operations.table import Choice, Flag, Integer, Operation, Parameter, Records
from keepwell.surfaces.failures import exit_code
from keepwell.surfaces.render import to_json, to_plain
from keepwell.version import VERSION

PROGRAM: Final = "keepwell"
INTERRUPTED: Final = 130

_EPILOG: Final = (
    "With no command and no terminal on standard input, keepwell serves MCP. Results go to standard output, everything "
    "else to standard error. Exit status: 0 done, 1 a fault of keepwell, 2 invalid input, 3 not found, 4 conflict, "
    "5 denied, 6 busy, 7 unsupported, 8 damaged, 130 interrupted."
)
_FILES_TO_WRITE: Final = frozenset({"output"})
"""Required parameters that are options all the same: what will be written should be named."""

_log: Final = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say and give the exit status; nothing is raised."""
    _let_nothing_break_output()
    wants_json = "--json" in arguments
    try:
        return int(_root().main(list(arguments), prog_name=PROGRAM, standalone_mode=False) or 0)
    except click.UsageError as error:
        return _tell(Invalid(error.format_message(), hint=_usage_hint(error)), as_json=wants_json)
    except KeepwellError as error:
        return _tell(error, as_json=wants_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of our output has gone; Python must not try again while it shuts down
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception:  # noqa: BLE001 - the one door of this surface
        _log.debug("unexpected", exc_info=True)
        return _tell(
            Internal("keepwell failed to do this.", hint="Run it again with KEEPWELL_LOG_LEVEL=debug to see why."),
            as_json=wants_json,
        )


def _let_nothing_break_output() -> None:
    """A console that cannot show a character gets an escape instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _usage_hint(error: click.UsageError) -> str:
    return f"See {error.ctx.command_path} --help." if error.ctx else ""


def _tell(error: KeepwellError, *, as_json: bool) -> int:
    if as_json:
        facts = {name: str(fact) for name, fact in error.facts.items()}
        plain = {"code": error.code, "message": error.sentence, "hint": error.hint, "facts": facts}
        click.echo(to_json({"error": plain}), err=True)
    else:
        click.echo(f"{PROGRAM}: {error.line}", err=True)
        for name, fact in error.facts.items():
            click.echo(f"  {name}: {ascii(fact) if isinstance(fact, str) else fact}", err=True)
    return exit_code(error)


def _root() -> click.Group:
    root = click.Group(
        callback=_bare,
        invoke_without_command=True,
        params=[*_settings_options(hidden=False), _json_option(), _version_option()],
        help="A local-first memory for coding assistants.",
        epilog=_EPILOG,
    )
    for operation in OPERATIONS:
        if operation.command:
            root.add_command(_command(operation))
    root.add_command(click.Command("serve", callback=_serve, params=_settings_options(hidden=False), help=_SERVE_HELP))
    root.add_command(
        click.Command(
            "config",
            callback=_show_config,
            params=[*_settings_options(hidden=True), _json_option()],
            help="Show each setting's value and where it came from.",
        )
    )
    shell = click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))
    root.add_command(
        click.Command("completion", callback=_complete, params=[shell], help="Print a shell's completion script.")
    )
    return root


_SERVE_HELP: Final = "Serve MCP on standard input and output until the client closes them."


def _settings_options(*, hidden: bool) -> list[click.Parameter]:
    return [
        click.Option(
            [setting.flag, setting.name], is_flag=setting.switch, help=setting.doc, hidden=hidden, default=None
        )
        for setting in config.SETTINGS
        if setting.flag
    ]


def _json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print one line of JSON.")


def _version_option() -> click.Option:
    def show(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's shape
        if value:
            click.echo(f"{PROGRAM} {VERSION}")
            context.exit()

    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version."
    )


@click.pass_context
def _bare(context: click.Context, /, as_json: bool, **flags: Any) -> int:  # noqa: FBT001 - click calls it
    context.obj = {"flags": _given(flags), "as_json": as_json}
    if context.invoked_subcommand:
        return 0
    if sys.stdin and sys.stdin.isatty():
        click.echo(context.get_help())
        return 0
    return _serve_with(_given(flags))


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value not in (None, False)}


@click.pass_context
def _serve(context: click.Context, /, **flags: Any) -> int:
    return _serve_with(_merged(context, flags))


def _serve_with(flags: Mapping[str, Any]) -> int:
    resolved = _resolved(flags)
    # the server's modules are not needed by any other command
    from keepwell.surfaces.serve import run as serve  # noqa: PLC0415

    return serve(resolved)


def _merged(context: click.Context, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings flags from before and after the command's name."""
    before: dict[str, Any] = context.obj["flags"]
    after = _given(flags)
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is given twice with different values.", context)
    return before | after


def _resolved(flags: Mapping[str, Any]) -> config.Resolved:
    resolved = config.resolve(flags, config.look_around())
    log.start(resolved.settings.log_level, resolved.settings.log_file)
    return resolved


@click.pass_context
def _show_config(context: click.Context, /, as_json: bool, **flags: Any) -> int:  # noqa: FBT001 - click calls it
    resolved = config.resolve(_merged(context, flags), config.look_around())
    rows = [
        {"name": value.setting.name, "value": _plain(value.value), "origin": value.origin, "doc": value.setting.doc}
        for value in resolved.values
    ]
    if as_json or context.obj["as_json"]:
        _print_json({"config_file": _plain(resolved.config_file), "settings": rows})
    else:
        _terminal().show_settings(rows, _plain(resolved.config_file))
    return 0


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _complete(shell: str) -> int:
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only this command needs it

    completion = get_completion_class(shell)
    if completion is None:
        raise Invalid(f"there is no completion for {shell}.")
    click.echo(completion(_root(), {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
    return 0


def _command(operation: Operation) -> click.Command:
    def perform(context: click.Context, /, **values: Any) -> int:
        as_json = values.pop("as_json") or context.obj["as_json"]
        flags = {name: values.pop(name) for name in _SETTING_NAMES}
        # a person's own arguments first: a wrong one must not make a store
        arguments = _arguments(operation, values)
        resolved = _resolved(_merged(context, flags))
        from keepwell.wiring import open_library  # noqa: PLC0415 - loads SQLite, which help does without

        with open_library(resolved, person=True) as library:
            reply = library.perform(operation, arguments)
        if as_json:
            _print_json(to_plain(reply))
        else:
            _terminal().show(reply)
        return 0

    own = [option for parameter in operation.parameters for option in _click_parameters(parameter)]
    return click.Command(
        operation.command,
        callback=click.pass_context(perform),
        params=[*own, *_settings_options(hidden=True), _json_option()],
        help=operation.summary,
        short_help=operation.title,
        epilog="The settings flags of keepwell --help may stand here too.",
    )


_SETTING_NAMES: Final = tuple(setting.name for setting in config.SETTINGS if setting.flag)


def _click_parameters(parameter: Parameter) -> list[click.Parameter]:
    """How a parameter is typed. Bounds are not told to click: the gate checks them, in the same words everywhere."""
    name, help_text = parameter.name, parameter.description
    option = "--" + name.replace("_", "-")
    match parameter.kind:
        case Flag():
            return [click.Option([option, name], is_flag=True, help=help_text)]
        case Records():
            main, other = parameter.kind.fields
            return [
                click.Option([option, name], multiple=True, metavar="TEXT", help=f"{help_text} Repeatable."),
                click.Option(
                    [f"{option}-from", f"{name}_from"],
                    multiple=True,
                    nargs=2,
                    metavar="URI TEXT",
                    help=f"The same with its {other.name.replace('_', ' ')} before the {main.name}. Repeatable.",
                ),
            ]
        case _ if parameter.required and name not in _FILES_TO_WRITE:
            return [click.Argument([name])]
        case Choice():
            words = "|".join(parameter.kind.values)
            return [click.Option([option, name], metavar=words, help=help_text, default=None)]
        case _:
            return [click.Option([option, name], help=help_text, default=None)]


def _arguments(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the gate takes it; what was not typed is left out."""
    arguments: dict[str, Any] = {}
    for parameter in operation.parameters:
        value = values[parameter.name]
        if isinstance(parameter.kind, Records):
            main, other = (field.name for field in parameter.kind.fields)
            pairs = values[f"{parameter.name}_from"]
            value = [{main: text} for text in value] + [{other: uri, main: text} for uri, text in pairs]
        elif isinstance(parameter.kind, Integer):
            value = _number(value)
        if value is not None:
            arguments[parameter.name] = value
    return arguments


def _number(text: str | None) -> int | str | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        # the gate will say what it wants instead
        return text


def _print_json(plain: object) -> None:
    """One line of UTF-8 whatever the locale says."""
    sys.stdout.flush()
    sys.stdout.buffer.write(to_json(plain).encode() + b"\n")
    sys.stdout.buffer.flush()


def _terminal() -> Any:
    from keepwell.surfaces import terminal  # noqa: PLC0415 - tables cost an import that --json and help do without

    return terminal
