"""What stands around the operations: settings flags, the bare command, help, completion, streams and encodings."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from person import COMMAND, Person, settle
from rawpipe import RawPipe

from keepwell.config import SETTINGS
from keepwell.operations import OPERATIONS
from keepwell.version import VERSION

OWN_COMMANDS = {"completion", "config", "serve"}
COMMANDS = sorted({row.command for row in OPERATIONS if row.command} | OWN_COMMANDS)


@pytest.fixture
def me(tmp_path: Path) -> Person:
    return settle(tmp_path)


@pytest.mark.parametrize("placed", ["before", "after", "both"])
def test_settings_flags_are_taken_before_and_after_the_command(me: Person, placed: str) -> None:
    flags = ["--db", str(me.root / "x" / "my.db"), "--client", "pi", "--no-global-read"]
    before = flags if placed in ("before", "both") else []
    after = flags if placed in ("after", "both") else []
    shown = {row["name"]: row["value"] for row in me.ask(*before, "config", *after)["settings"]}
    assert (shown["database"], shown["base_dir"]) == (str(me.root / "x" / "my.db"), str(me.root / "x"))
    assert (shown["client"], shown["no_global_read"]) == ("pi", True)


@pytest.mark.parametrize(
    "words",
    [
        ("--db", "a.db", "config", "--db", "b.db"),
        ("--db", "a.db", "--db", "b.db", "config"),
        ("config", "--db", "a.db", "--db", "b.db"),
        ("--db", "a.db", "serve", "--db", "b.db"),
        ("--db", "a.db", "--db", "b.db"),
    ],
    ids=" ".join,
)
def test_a_flag_given_twice_with_different_values_is_refused_by_its_name(me: Person, words: tuple[str, ...]) -> None:
    assert "--db is given more than once" in me.fail(*words, status=2)


def test_a_flag_given_twice_with_the_same_value_is_taken(me: Person) -> None:
    assert me.ask("--client", "pi", "--client", "pi", "config", "--client", "pi")


def test_config_shows_every_setting_with_value_origin_and_doc(me: Person) -> None:
    file = me.root / "my.toml"
    file.write_text("[storage]\nlock_deadline_ms = 5000\n")
    mine = me.where(MCP_MEMORY_CONFIG=str(file), MCP_DEVICE="laptop")
    answer = mine.ask("config", "--client", "pi")
    assert answer["config_file"] == str(file)
    rows = {row["name"]: row for row in answer["settings"]}
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert rows["client"]["origin"] == "flag --client"
    assert rows["device"] == {
        "name": "device",
        "value": "laptop",
        "origin": "environment MCP_DEVICE",
        "doc": next(setting.doc for setting in SETTINGS if setting.name == "device"),
    }
    assert (rows["lock_deadline_ms"]["value"], rows["journal_mode"]["origin"]) == (5000, "default")
    assert str(file) in rows["lock_deadline_ms"]["origin"]
    shown = mine.see("config")
    assert all(setting.name in shown and setting.doc in shown for setting in SETTINGS)


def test_config_hides_what_looks_like_a_secret(me: Person) -> None:
    for words in (["config"], ["config", "--json"]):
        shown = me.see(*words, "--session", "token=s3cr3t")
        assert "s3cr3t" not in shown
        assert "[redacted]" in shown


def test_config_makes_no_store(me: Person) -> None:
    me.see("config")
    assert not me.database.parent.exists()


def test_a_required_configuration_that_is_missing_stops_every_command_before_anything_is_made(me: Person) -> None:
    strict = me.where(MCP_MEMORY_REQUIRE_CONFIG="1")
    for words in (["status"], ["add", "x", "--evidence", "y"], ["serve"], []):
        assert "MCP_MEMORY_REQUIRE_CONFIG=1" in strict.fail(*words, status=3)
    assert not me.database.parent.exists()


def test_bad_settings_stop_the_server_with_one_line(me: Person) -> None:
    said = me.fail("--allow-global-write", status=2)
    assert said == "keepwell: invalid: --allow-global-write needs --allow-write. Give both, or neither.\n"
    assert "toolsets are lessons, categories, admin, or all" in me.fail("serve", "--tools", "lesson", status=2)
    said = me.fail("status", "--log-file", "missing/folder/my.log", status=5)
    assert "the log file cannot be opened" in said


def test_the_log_file_is_private_and_leaves_standard_error_empty(me: Person) -> None:
    me.where(KEEPWELL_LOG_LEVEL="debug").see("status", "--log-file", "my.log")
    assert (me.project / "my.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "words",
    [("--client", "pi", "--allow-write"), ("serve", "--client", "pi", "--allow-write"), ("--allow-write", "serve")],
    ids=" ".join,
)
def test_without_a_command_and_a_terminal_it_serves_as_serve_does(me: Person, words: tuple[str, ...]) -> None:
    with RawPipe([*COMMAND, *words], env=me.environment, cwd=me.project) as server:
        server.initialize()
        tools = {tool["name"] for tool in server.answer("tools/list")["result"]["tools"]}
        assert {"memory_search", "memory_add"} <= tools
        server.close_stdin()
        assert server.wait() == 0


def test_bare_on_a_terminal_prints_help(me: Person) -> None:
    here, there = pty.openpty()
    ran = me.type(stdin=there)
    os.close(here)
    os.close(there)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(b"Usage: keepwell")
    assert not me.database.parent.exists()


def test_json_without_a_command_is_refused(me: Person) -> None:
    assert json.loads(me.fail("--json", status=2))["error"]["code"] == "invalid"


def test_help_names_every_command_and_every_settings_flag(me: Person) -> None:
    shown = me.see("--help")
    assert me.see("-h") == shown
    assert all(re.search(rf"^  {command} ", shown, re.MULTILINE) for command in COMMANDS)
    assert all(setting.flag in shown for setting in SETTINGS if setting.flag)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(me: Person, command: str) -> None:
    assert f"Usage: keepwell {command} " in me.see(command, "--help")


def test_the_version_is_told_on_standard_output(me: Person) -> None:
    assert me.see("--version") == f"keepwell {VERSION}\n"


def loaded_by(person: Person, *words: str) -> set[str]:
    """The top-level modules that a command imports."""
    program = (
        "import sys\nfrom keepwell.surfaces.cli import run\nrun(sys.argv[1:])\n"
        "sys.stderr.write(' '.join({name.split('.')[0] for name in sys.modules}))\n"
    )
    command = [sys.executable, "-c", program, *words]
    ran = subprocess.run(
        command, env=person.environment, cwd=person.project, capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


COSTLY = {"mcp", "mcp_types", "pydantic", "rich", "apsw", "anyio", "asyncio"}


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), ("search", "--help"), ("config", "--json")], ids=" ".join
)
def test_what_only_tells_about_keepwell_loads_neither_sdk_nor_database_nor_tables(
    me: Person, words: tuple[str, ...]
) -> None:
    assert not loaded_by(me, *words) & COSTLY


def test_a_command_loads_the_database_but_not_the_sdk(me: Person) -> None:
    loaded = loaded_by(me, "status")
    assert {"apsw", "rich"} <= loaded
    assert not loaded & {"mcp", "pydantic", "anyio"}
    assert "rich" not in loaded_by(me, "status", "--json")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_gives_a_script_that_asks_keepwell(me: Person, shell: str) -> None:
    script = me.see("completion", shell)
    assert f"_KEEPWELL_COMPLETE={shell}_complete" in script
    assert "keepwell" in script


def test_the_bash_script_is_bash(me: Person) -> None:
    script = me.see("completion", "bash")
    assert subprocess.run(["bash", "-n"], input=script.encode(), check=False).returncode == 0


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("keepwell se", {"search", "serve"}),
        ("keepwell feedback 1 u", {"useful"}),
        ("keepwell feedback 1 ", {"useful", "not_useful", "incorrect", "outdated"}),
        ("keepwell search x --scope g", {"global"}),
        ("keepwell --allow-", {"--allow-write", "--allow-global-write"}),
        ("keepwell completion z", {"zsh"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_commands_options_and_words(me: Person, shell: str, typed: str, offered: set[str]) -> None:
    words = typed.split(" ")
    variables = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        variables["COMP_CWORD"] = words[-1]
    answer = me.where(_KEEPWELL_COMPLETE=f"{shell}_complete", **variables).see()
    split = {"bash": r"^plain,(\S+)", "zsh": r"^plain\n(\S+)", "fish": r"^plain,([^\t\n]+)"}[shell]
    assert set(re.findall(split, answer, re.MULTILINE)) == offered
    assert not me.database.parent.exists()


TEXT = "Ünï 中文 \U0001f468\u200d\U0001f469\u200d\U0001f467 ✔"

EVERYTHING: tuple[tuple[str, ...], ...] = (
    ("add", TEXT, "--evidence", TEXT),
    ("search", "中文"),
    ("get", "1"),
    ("feedback", "1", "useful", "--reason", TEXT),
    ("history", "1"),
    ("supersede", "1", TEXT + "!", "--evidence", TEXT),
    ("archive", "2"),
    ("scopes",),
    ("status", "--check"),
    ("config",),
    ("import", "lessons.jsonl"),
    ("relink", "/no/such/ünï"),
    ("get", "999"),
    ("search", ""),
    ("--help",),
    ("completion", "bash"),
)
STATUSES = [3 if words[0] == "relink" or words[-1] == "999" else 2 if words[-1] == "" else 0 for words in EVERYTHING]

NARROW = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
SETTINGS_OF_A_CONSOLE: dict[str, dict[str, str]] = {
    "the C locale": {"LC_ALL": "C"},
    "the C locale without UTF-8 mode": NARROW,
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "cp936": {"PYTHONIOENCODING": "cp936"},
    "strict ascii": {**NARROW, "PYTHONIOENCODING": "ascii:strict"},
    "no terminal type": {"TERM": ""},
    "dumb and narrow": {"TERM": "dumb", "COLUMNS": "12"},
    "no colour": {"NO_COLOR": "1"},
    "a bare path": {"PATH": "/usr/bin:/bin"},
}


def do_everything(person: Person, **streams: Any) -> list["subprocess.CompletedProcess[bytes]"]:
    lesson = {"text": "Imported " + TEXT, "evidence": [{"description": TEXT}]}
    (person.project / "lessons.jsonl").write_text(json.dumps(lesson) + "\n{broken\n")
    return [person.type(*words, **streams) for words in EVERYTHING]


@pytest.mark.parametrize("console", SETTINGS_OF_A_CONSOLE.values(), ids=SETTINGS_OF_A_CONSOLE.keys())
def test_every_command_works_whatever_the_console_can_show(me: Person, console: dict[str, str]) -> None:
    mine = me.where(**console)
    all_ran = do_everything(mine)
    assert not any(b"Traceback" in ran.stderr or b"internal" in ran.stderr for ran in all_ran)
    if console.items() >= NARROW.items():
        # there Python itself cannot read what was typed, and half characters are refused
        assert all_ran[0].returncode == 2
        assert mine.ask("status", "--check")["faults"] == []
        return
    assert [ran.returncode for ran in all_ran] == STATUSES
    assert mine.ask("get", "1")["memory"]["text"] == TEXT


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_a_console_cannot_show_becomes_an_escape_behind_a_plain_bar(me: Person, encoding: str) -> None:
    me.add("日本 [x]")
    shown = me.where(PYTHONIOENCODING=encoding).type("get", "1").stdout.decode(encoding)
    assert "| \\u65e5\\u672c [x]" in shown
    found = me.where(PYTHONIOENCODING=encoding).type("search", "日本").stdout.decode(encoding)
    assert "| \\u65e5\\u672c [x]" in found


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "1>out.txt 2>err.txt"])
def test_every_command_works_with_closed_or_redirected_streams_and_hurts_no_database(
    me: Person, redirection: str
) -> None:
    (me.project / "lessons.jsonl").write_text('{"text": "imported", "evidence": [{"description": "x"}]}\n')
    statuses = []
    for words in EVERYTHING:
        command = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *words]
        ran = subprocess.run(command, cwd=me.project, env=me.environment, capture_output=True, check=False)
        assert b"Traceback" not in ran.stderr
        statuses.append(ran.returncode)
    assert statuses == STATUSES
    assert me.ask("status", "--check")["faults"] == []
    assert me.ask("get", "1")["memory"]["text"] == TEXT


@pytest.mark.parametrize(
    "words", [("scopes",), ("scopes", "--json"), ("--help",), ("--version",), ("completion", "zsh")]
)
def test_a_reader_that_leaves_early_gets_no_complaint(me: Person, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = me.type(*words, stdout=writer)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("words", [("scopes",), ("scopes", "--json"), ("--help",), ("completion", "zsh")])
def test_a_result_that_cannot_be_written_is_told(me: Person, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = me.type(*words, stdout=full)
    assert ran.returncode == 5
    assert b"the result could not be written to standard output" in ran.stderr
    assert b"denied" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


def test_an_error_that_cannot_be_told_keeps_its_exit_status(me: Person) -> None:
    with Path("/dev/full").open("wb") as full:
        assert me.type("get", "1", stderr=full).returncode == 3
        assert me.type("get", "1", "--json", stderr=full).returncode == 3


def test_without_any_home_the_user_database_is_asked_and_a_named_store_needs_none(me: Person) -> None:
    environment = {name: value for name, value in me.environment.items() if name != "HOME"}
    command = [*COMMAND, "config", "--json", "--db", "here/memory.db"]
    ran = subprocess.run(command, cwd=me.project, env=environment, capture_output=True, check=False)
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["settings"][0]["value"] == str(me.project / "here" / "memory.db")


def test_a_working_directory_that_is_gone_is_told_where_a_project_is_needed(me: Person) -> None:
    folder = me.root / "gone"
    folder.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'

    def ran(*words: str) -> "subprocess.CompletedProcess[bytes]":
        folder.mkdir(exist_ok=True)
        command = ["sh", "-c", script, "sh", str(folder), *COMMAND, *words]
        return subprocess.run(command, env=me.environment, cwd=me.root, capture_output=True, check=False)

    assert ran("status").returncode == 0
    refused = ran("search", "x")
    assert refused.returncode == 2
    assert b"the working directory is gone" in refused.stderr
    assert ran("search", "x", "--workspace", str(me.project)).returncode == 0
