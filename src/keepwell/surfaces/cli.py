"""The command line: one command for each operation of the table, and the few that are about the program itself."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
from click.shell_completion import get_completion_class, shell_complete

from keepwell import config, log
from keepwell.model.errors import Denied, Internal, Invalid, KeepwellError
from keepwell.operations import OPERATIONS
from keepwell.operations.table import Operation, bind
from keepwell.surfaces import output, typed
from keepwell.surfaces.failures import exit_code
from keepwell.surfaces.output import PROGRAM
from keepwell.surfaces.render import to_plain
from keepwell.version import VERSION

INTERRUPTED: Final = 130
UNHEALTHY: Final = 8
SHELLS: Final = ("bash", "zsh", "fish")

_COMPLETE: Final = "_KEEPWELL_COMPLETE"
"""The variable by which the completion scripts ask; its form is click's."""

_EPILOG: Final = (
    "With no command and no terminal on standard input, keepwell serves MCP. Results go to standard output, everything "
    "else to standard error. Exit status: 0 done, 1 a fault of keepwell, 2 invalid input, 3 not found, 4 conflict, "
    "5 denied, 6 busy, 7 unsupported, 8 damaged or not healthy, 130 interrupted."
)

_log: Final = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say and give the exit status; nothing is raised."""
    output.let_nothing_break_output()
    as_json = "--json" in arguments
    try:
        return _invoke(list(arguments))
    except click.ClickException as error:
        return _told(Invalid(error.format_message(), hint=_usage_hint(error)), as_json=as_json)
    except KeepwellError as error:
        return _told(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # whoever reads our output has seen enough
        return 0
    except Exception:  # noqa: BLE001 - the one door of this surface
        _log.debug("unexpected", exc_info=True)
        hint = "Run it again with KEEPWELL_LOG_LEVEL=debug to see why."
        return _told(Internal("keepwell failed to do this.", hint=hint), as_json=as_json)


def _invoke(arguments: list[str]) -> int:
    root = _root()
    if question := config.look_around().environment.get(_COMPLETE):
        with output.results():
            return shell_complete(root, {}, PROGRAM, _COMPLETE, question)
    try:
        with root.make_context(PROGRAM, arguments) as context:
            return int(root.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code


def _told(error: KeepwellError, *, as_json: bool) -> int:
    output.tell(error, as_json=as_json)
    return exit_code(error)


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"See {context.command_path} --help." if context else ""


def _root() -> click.Group:
    options = [*typed.settings_options(), typed.json_option()]
    root = click.Group(
        callback=_bare,
        invoke_without_command=True,
        params=[*options, _version_option(), _help_option()],
        help="A local-first memory for coding assistants.",
        epilog=_EPILOG,
        add_help_option=False,
    )
    for operation in OPERATIONS:
        if operation.command:
            root.add_command(_operation_command(operation))
    for command in _own_commands():
        root.add_command(command)
    return root


def _own_commands() -> list[click.Command]:
    """The commands about the program itself, which no row of the table stands for."""
    shell = click.Argument(["shell"], type=click.Choice(SHELLS))
    hidden = typed.settings_options(hidden=True)
    return [
        _command("serve", _serve, typed.settings_options(), "Serve MCP on standard input and output until they close."),
        _command("config", _show_config, [*hidden, typed.json_option()], "Show each setting's value and its origin."),
        _command("completion", _complete, [shell], "Print a shell's completion script."),
    ]


def _command(name: str, act: Callable[..., Any], parameters: list[click.Parameter], told: str) -> click.Command:
    return click.Command(name, callback=act, params=[*parameters, _help_option()], help=told, add_help_option=False)


def _help_option() -> click.Option:
    return _telling_option(["-h", "--help"], click.Context.get_help, "Show this message.")


def _version_option() -> click.Option:
    return _telling_option(["--version"], lambda _context: f"{PROGRAM} {VERSION}", "Show the version.")


def _telling_option(names: list[str], text: Callable[[click.Context], str], told: str) -> click.Option:
    """An option that prints something instead of running the command."""

    def tell(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's shape
        if value and not context.resilient_parsing:
            output.print_text(text(context))
            context.exit()

    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=tell, help=told)


@click.pass_context
def _bare(context: click.Context, /, **before: Any) -> int:
    """What stands before a command's name, kept for it; alone, it is a launch of the server or a call for help."""
    context.obj = before
    if context.invoked_subcommand:
        return 0
    if sys.stdin.isatty():
        output.print_text(context.get_help())
        return 0
    if before["as_json"]:
        raise click.UsageError("--json is for commands; the server has no use for it.", context)
    return _launch(before)


@click.pass_context
def _serve(context: click.Context, /, **after: Any) -> int:
    return _launch(context.obj, after)


def _launch(*places: Mapping[str, Any]) -> int:
    resolved = _resolved(*places)
    # the server's modules are not needed by any other command
    from keepwell.surfaces.serve import run as serve  # noqa: PLC0415

    return serve(resolved)


def _resolved(*places: Mapping[str, Any]) -> config.Resolved:
    """The settings of this launch; from here on the log goes where they say."""
    resolved = config.resolve(typed.settings_given(*places), config.look_around())
    settings = resolved.settings
    try:
        log.start(settings.log_level, settings.log_file)
    except OSError as error:
        raise Denied(f"the log file cannot be opened ({error.strerror}).", file=settings.log_file) from None
    return resolved


def _operation_command(operation: Operation) -> click.Command:
    @click.pass_context
    def perform(context: click.Context, /, **after: Any) -> int:
        # a person's own arguments first: a wrong one must not make a store
        arguments = typed.arguments_given(operation, after)
        bind(operation.parameters, arguments)
        resolved = _resolved(context.obj, after)
        reply = _performed(operation, arguments, resolved)
        if after["as_json"] or context.obj["as_json"]:
            output.print_json(to_plain(reply))
        else:
            _views().show(reply)
        return _status_of(reply)

    by_place = filter(typed.is_typed_by_place, operation.parameters)
    meanings = [f"{parameter.name.upper()}: {parameter.description}" for parameter in by_place]
    command = _command(
        str(operation.command),
        perform,
        [*typed.options_of(operation), *typed.settings_options(hidden=True), typed.json_option()],
        "\n\n".join([operation.summary, *meanings]),
    )
    command.short_help = operation.title
    command.epilog = "The settings flags of keepwell --help may stand here too."
    return command


def _performed(operation: Operation, arguments: dict[str, Any], resolved: config.Resolved) -> Any:
    # loads SQLite, which help does without
    from keepwell.wiring import open_library, open_vault  # noqa: PLC0415

    if operation.offline:
        return operation.run(open_vault(resolved), **bind(operation.parameters, arguments))
    with open_library(resolved, person=True, tell=output.tell_progress) as library:
        return library.perform(operation, arguments)


def _status_of(reply: Any) -> int:
    """The exit status: what was asked for can have been done and still have found damage."""
    return 0 if getattr(reply, "healthy", True) else UNHEALTHY


@click.pass_context
def _show_config(context: click.Context, /, **after: Any) -> None:
    resolved = _resolved(context.obj, after)
    file = None if resolved.config_file is None else str(resolved.config_file)
    rows = [
        {"name": value.setting.name, "value": _plain(value.value), "origin": value.origin, "doc": value.setting.doc}
        for value in resolved.values
    ]
    if after["as_json"] or context.obj["as_json"]:
        output.print_json({"config_file": file, "settings": rows})
    else:
        _views().show_settings(rows, file)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return log.redacted(",".join(value) if isinstance(value, tuple) else str(value))


def _complete(shell: str) -> None:
    completion = get_completion_class(shell)
    if completion is None:
        raise Invalid(f"there is no completion for {shell}.")
    output.print_text(completion(_root(), {}, PROGRAM, _COMPLETE).source())


def _views() -> Any:
    from keepwell.surfaces import views  # noqa: PLC0415 - tables cost an import that --json and help do without

    return views
