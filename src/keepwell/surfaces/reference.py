"""The reference pages, rendered from the table, the settings and the error family.

`python -m keepwell.surfaces.reference FOLDER` writes them; with `--check` it only says which are not current.
"""

import contextlib
import io
import json
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from keepwell.config import CONFIG_VARIABLES, SETTINGS, Setting
from keepwell.model.category import NAME_BYTES
from keepwell.model.errors import FAMILY
from keepwell.operations import OPERATIONS
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
from keepwell.surfaces.cli import run
from keepwell.surfaces.failures import EXIT_CODES

OWN_COMMANDS: Final = ("completion", "config", "serve")
"""Commands about the program itself, which no row of the table stands for."""

_GENERATED: Final = (
    "<!-- Generated from the code by `python -m keepwell.surfaces.reference docs/reference`; do not edit. -->"
)


def pages() -> Mapping[str, str]:
    """Every reference page by file name."""
    return {
        "tools.md": _page("MCP tools", map(_tool, (row for row in OPERATIONS if row.tool))),
        "commands.md": _page("Commands", map(_command, _command_names())),
        "settings.md": _page("Settings", [_SETTINGS_INTRODUCTION, *map(_setting, SETTINGS), _variables()]),
        "errors.md": _page("Errors", [_errors()]),
        "config.example.toml": _example_file(),
    }


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", _GENERATED, *parts]) + "\n"


def _tool(operation: Operation) -> str:
    lines = [f"## {operation.tool}", "", operation.summary, ""]
    lines += [f"Effect: {operation.effect}. Toolset: {operation.toolset}.", *_needs(operation), ""]
    lines += ["| parameter | takes | meaning |", "|---|---|---|", *_rows(operation.parameters, "")]
    lines += ["", f"Answers with: {', '.join(field.name for field in fields(operation.result))}."]
    for example in operation.examples:
        arguments = json.dumps(example.arguments, ensure_ascii=False)
        lines += ["", f"{example.purpose}:", "", "```json", arguments, "```"]
    return "\n".join(lines)


def _needs(operation: Operation) -> list[str]:
    return ["Needs `--allow-write`."] if operation.needs_write else []


def _rows(parameters: Iterable[Parameter], prefix: str) -> Iterable[str]:
    for parameter in parameters:
        needed = "" if parameter.required else f"; optional, default {_shown(parameter.default)}"
        yield f"| `{prefix}{parameter.name}` | {_takes(parameter.kind)}{needed} | {parameter.description} |"
        if isinstance(parameter.kind, Records):
            yield from _rows(parameter.kind.fields, f"{prefix}{parameter.name}[].")


def _shown(value: object) -> str:
    return "none" if value is None else f"`{value}`"


def _takes(kind: Kind) -> str:
    match kind:
        case Text():
            return f"text, 1 to {kind.max_bytes:,} bytes of UTF-8"
        case Integer():
            return f"integer, {kind.minimum} to {kind.maximum}"
        case Choice():
            return "one of " + ", ".join(f"`{word}`" for word in kind.values)
        case Flag():
            return "true or false"
        case Records():
            return f"{kind.minimum} to {kind.maximum} objects"
        case Name():
            return f"a category's name, 1 to {NAME_BYTES} bytes of UTF-8"
        case Object():
            return "a JSON object"
        case Listed():
            return f"1 to {kind.maximum}, each {_takes(kind.item)}"


def _command_names() -> Iterable[str]:
    yield ""
    yield from sorted([operation.command for operation in OPERATIONS if operation.command] + list(OWN_COMMANDS))


def _command(name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run([*name.split(), "--help"])
    return f"## keepwell {name}".rstrip() + f"\n\n```text\n{printed.getvalue().rstrip()}\n```"


_SETTINGS_INTRODUCTION: Final = (
    "A flag wins over the environment, the environment over the configuration file, the file over the default. "
    "`keepwell config` shows each value and where it came from. The configuration file is `keepwell/config.toml` in "
    "`$XDG_CONFIG_HOME`, else in `~/.config`."
)


def _setting(setting: Setting) -> str:
    sources = [
        ("flag", setting.flag),
        ("environment", setting.variable),
        ("file", setting.file_key),
        ("default", None if setting.default is None else _default(setting.default)),
    ]
    told = ", ".join(f"{source} `{name}`" for source, name in sources if name)
    return f"## {setting.name}\n\n{setting.doc}\n\nSources: {told}."


def _default(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _variables() -> str:
    rows = "\n".join(f"| `{name}` | {doc} |" for name, doc in CONFIG_VARIABLES.items())
    return f"## Variables about the configuration file\n\n| variable | meaning |\n|---|---|\n{rows}"


def _example_file() -> str:
    """A configuration file in which every setting is explained and none is set."""
    lines = [
        "# keepwell's configuration: keepwell/config.toml in $XDG_CONFIG_HOME, else in ~/.config.",
        "# Every table and every key may be left out. Flags and variables win; `keepwell config` shows what holds.",
        "# Generated from the code by `python -m keepwell.surfaces.reference docs/reference`.",
    ]
    in_file = [setting for setting in SETTINGS if setting.file_key]
    for table in dict.fromkeys(str(setting.file_key).partition(".")[0] for setting in in_file):
        lines += ["", f"[{table}]"]
        for setting in in_file:
            place, _, key = str(setting.file_key).partition(".")
            if place == table:
                lines += ["", *textwrap.wrap(setting.doc, 118, initial_indent="# ", subsequent_indent="# ")]
                lines.append(f"# {key} = {_toml(setting.default if setting.example is None else setting.example)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # of such values JSON is TOML
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _errors() -> str:
    rows = "\n".join(
        f"| `{error.code}` | {EXIT_CODES[error.code]} | {_on_one_line(error.__doc__)} |" for error in FAMILY
    )
    return (
        "Over MCP an error is a tool error (`isError`) with one line of text: code, sentence, hint. On the command "
        "line that line goes to standard error, and the exit status tells the code.\n\n"
        f"| code | exit status | meaning |\n|---|---|---|\n{rows}"
    )


def _on_one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def main(arguments: list[str]) -> int:
    """Write the pages into the folder that the arguments name, or check them; gives the exit status."""
    folder = Path(next(word for word in arguments if not word.startswith("-")))
    stale = [name for name, text in pages().items() if _present(folder / name) != text]
    if "--check" in arguments:
        sys.stderr.write("".join(f"not current: {name}\n" for name in stale))
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).write_text(pages()[name], encoding="utf-8")
    return 0


def _present(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
