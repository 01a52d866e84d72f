"""Settings: where each value comes from, who wins, and what is refused before anything is made."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepwell import config
from keepwell.model.errors import Denied, Invalid, KeepwellError, NotFound
from keepwell.operations import DEFAULT_TOOLSETS, TOOLSETS


@pytest.fixture
def around(tmp_path: Path) -> config.Surroundings:
    """A home and a working directory of its own, an empty environment."""
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    return config.Surroundings({}, cwd, home, "workbench")


def within(around: config.Surroundings, **environment: str) -> config.Surroundings:
    return replace(around, environment=environment)


def with_file(around: config.Surroundings, content: str | bytes) -> config.Surroundings:
    """The same with a configuration file in the home directory."""
    assert around.home
    file = around.home / ".config" / "keepwell" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return around


def settings(around: config.Surroundings, **flags: Any) -> config.Settings:
    return config.resolve(flags, around).settings


def origins(around: config.Surroundings, flags: Mapping[str, Any]) -> dict[str, str]:
    return {value.setting.name: value.origin for value in config.resolve(flags, around).values}


def refusal(around: config.Surroundings, **flags: Any) -> KeepwellError:
    with pytest.raises(KeepwellError) as caught:
        config.resolve(flags, around)
    return caught.value


def test_with_nothing_given_the_store_is_below_the_home_directory(around: config.Surroundings) -> None:
    found = settings(around)
    assert around.home
    assert found.database == around.home / ".local/share/keepwell/memory.db"
    assert found.workspace == around.cwd
    assert not found.workspace_is_explicit
    assert (found.client, found.session, found.model, found.device) == ("unknown", None, None, "workbench")
    assert (found.allow_write, found.allow_global_write, found.no_global_read) == (False, False, False)
    assert (found.journal_mode, found.synchronous) == ("wal", "full")
    assert (found.sqlite_busy_timeout_ms, found.lock_deadline_ms) == (200, 10_000)
    assert found.tools == DEFAULT_TOOLSETS
    assert set(origins(around, {}).values()) == {"default"}


def test_resolving_makes_nothing(around: config.Surroundings, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    config.resolve({"database": "new/folder/memory.db"}, around)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    around: config.Surroundings, tmp_path: Path
) -> None:
    places = [(), ("file",), ("file", "environment"), ("file", "environment", "flag")]
    logs = {source: tmp_path / f"{source}.log" for source in ("file", "environment", "flag")}
    seen = []
    for sources in places:
        if "file" in sources:
            with_file(around, f'[log]\nfile = "{logs["file"]}"\n')
        variables = {"KEEPWELL_LOG_FILE": str(logs["environment"])} if "environment" in sources else {}
        flags = {"log_file": str(logs["flag"])} if "flag" in sources else {}
        here = within(around, **variables)
        seen.append((settings(here, **flags).log_file, origins(here, flags)["log_file"].split()[0]))
    assert seen == [
        (None, "default"),
        (logs["file"], "file"),
        (logs["environment"], "environment"),
        (logs["flag"], "flag"),
    ]


def test_an_origin_names_the_flag_the_variable_or_the_file_with_its_key(around: config.Surroundings) -> None:
    with_file(around, '[storage]\njournal_mode = "delete"\n')
    found = origins(within(around, MCP_DEVICE="laptop"), {"client": "pi"})
    assert found["client"] == "flag --client"
    assert found["device"] == "environment MCP_DEVICE"
    assert found["journal_mode"] == f"file {around.home}/.config/keepwell/config.toml [storage] journal_mode"


def test_a_database_that_was_named_takes_the_base_directory_along(around: config.Surroundings, tmp_path: Path) -> None:
    here = within(around, MCP_MEMORY_DIR=str(tmp_path / "base"))
    assert settings(here).database == tmp_path / "base" / "memory.db"
    found = settings(here, database=str(tmp_path / "other" / "lessons.db"))
    assert (found.database.name, found.base_dir) == ("lessons.db", tmp_path / "other")
    assert origins(here, {"database": str(tmp_path / "x.db")})["base_dir"] == "flag --db"


def test_paths_on_the_command_line_start_at_the_working_directory_or_the_home(around: config.Surroundings) -> None:
    assert around.cwd
    assert around.home
    assert settings(around, database="x/memory.db").database == around.cwd / "x" / "memory.db"
    assert settings(around, database="~/x.db").database == around.home / "x.db"
    assert settings(around, workspace=".").workspace == around.cwd


@pytest.mark.parametrize("value", ["store", "./store", "../store"])
def test_a_relative_base_directory_is_refused_as_it_would_depend_on_the_launcher(
    around: config.Surroundings, value: str
) -> None:
    assert "MCP_MEMORY_DIR is a relative path" in refusal(within(around, MCP_MEMORY_DIR=value)).sentence
    with_file(around, f'[storage]\nbase_dir = "{value}"\n')
    assert "[storage] base_dir is a relative path" in refusal(around).sentence


def test_a_relative_path_in_the_file_is_refused_where_a_flag_may_have_one(around: config.Surroundings) -> None:
    assert around.cwd
    assert settings(around, log_file="my.log").log_file == around.cwd / "my.log"
    assert "[log] file is a relative path" in refusal(with_file(around, '[log]\nfile = "my.log"\n')).sentence


def test_another_users_home_is_not_guessed(around: config.Surroundings) -> None:
    assert "only ~/ is expanded" in refusal(around, database="~bob/memory.db").sentence


def test_the_workspace_comes_from_the_flag_then_the_gateway_then_the_working_directory(
    around: config.Surroundings, tmp_path: Path
) -> None:
    gateway = within(around, MCP_GATEWAY_WORKSPACE=str(tmp_path / "gateway"))
    assert settings(around).workspace == around.cwd
    assert settings(gateway).workspace == tmp_path / "gateway"
    assert settings(gateway).workspace_is_explicit
    assert settings(gateway, workspace=str(tmp_path / "flag")).workspace == tmp_path / "flag"


def test_xdg_data_home_moves_the_store_and_a_relative_one_is_ignored(
    around: config.Surroundings, tmp_path: Path
) -> None:
    assert around.home
    assert settings(within(around, XDG_DATA_HOME=str(tmp_path))).base_dir == tmp_path / "keepwell"
    assert settings(within(around, XDG_DATA_HOME="data")).base_dir == around.home / ".local/share/keepwell"


def test_an_empty_variable_counts_as_unset(around: config.Surroundings) -> None:
    empty = {setting.variable: "" for setting in config.SETTINGS if setting.variable}
    assert settings(within(around, **empty, XDG_CONFIG_HOME="", XDG_DATA_HOME="")) == settings(around)


def test_an_empty_flag_is_refused(around: config.Surroundings) -> None:
    assert "--db is empty" in refusal(around, database="").sentence


def test_without_any_home_the_database_must_be_named(around: config.Surroundings, tmp_path: Path) -> None:
    homeless = replace(around, home=None)
    assert "--db" in refusal(homeless).hint
    assert settings(homeless, database=str(tmp_path / "memory.db")).database == tmp_path / "memory.db"
    assert "home directory" in refusal(homeless, database="~/memory.db").sentence


def test_without_a_working_directory_only_relative_paths_are_refused(
    around: config.Surroundings, tmp_path: Path
) -> None:
    lost = replace(around, cwd=None)
    assert settings(lost, database=str(tmp_path / "memory.db")).workspace is None
    assert "--db is a relative path" in refusal(lost, database="memory.db").sentence


@pytest.mark.parametrize("value", [None, "", "relative"])
def test_a_home_that_leads_nowhere_is_looked_up_in_the_user_database(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", value)
    assert config.look_around().home == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_user_whom_the_system_does_not_know_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert config.look_around().home is None


def test_a_working_directory_that_is_gone_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert config.look_around().cwd is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"allow_global_write": True}, "needs --allow-write"),
        ({"allow_write": True, "allow_global_write": True, "no_global_read": True}, "contradict"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    around: config.Surroundings, flags: dict[str, Any], said: str
) -> None:
    assert said in refusal(around, **flags).sentence


def test_flags_that_go_together_are_taken(around: config.Surroundings) -> None:
    found = settings(around, allow_write=True, allow_global_write=True)
    assert (found.allow_write, found.allow_global_write) == (True, True)
    assert settings(around, allow_write=True, no_global_read=True).no_global_read


@pytest.mark.parametrize("name", ["client", "session", "model"])
@pytest.mark.parametrize(("value", "said"), [("x" * 257, "257 bytes"), ("a\0b", "U+0000"), (" ", "is empty")])
def test_an_attribution_that_cannot_be_stored_is_refused_at_launch(
    around: config.Surroundings, name: str, value: str, said: str
) -> None:
    error = refusal(around, **{name: value})
    assert f"--{name}" in error.sentence
    assert said in error.sentence
    assert getattr(settings(around, **{name: "x" * 256}), name) == "x" * 256


@pytest.mark.parametrize("host", ["", "x" * 300, "a\x1bb"])
def test_a_host_name_that_cannot_be_stored_makes_the_device_unknown(around: config.Surroundings, host: str) -> None:
    assert settings(replace(around, host=host)).device == "unknown"


@pytest.mark.parametrize(
    ("text", "chosen"), [("all", TOOLSETS), ("lessons", ("lessons",)), (" lessons,lessons ", ("lessons",))]
)
def test_toolsets_are_chosen_by_name(around: config.Surroundings, text: str, chosen: tuple[str, ...]) -> None:
    assert settings(around, tools=text).tools == chosen


@pytest.mark.parametrize("text", ["lesson", "lessons,all the rest", ",", "lessons;x", "ALL"])
def test_an_unknown_toolset_is_refused_with_the_names_that_there_are(around: config.Surroundings, text: str) -> None:
    assert ", ".join(TOOLSETS) in refusal(around, tools=text).sentence


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KEEPWELL_LOG_LEVEL", "loud"),
        ("KEEPWELL_SHARED_MOUNT", "perhaps"),
        ("MCP_DEVICE", "x" * 257),
        ("MCP_MEMORY_DIR", "relative"),
        ("MCP_MEMORY_REQUIRE_CONFIG", "maybe"),
        ("MCP_MEMORY_CONFIG", ""),
        ("MCP_MEMORY_CONFIG", "  "),
    ],
)
def test_a_bad_variable_is_fatal_and_named(around: config.Surroundings, variable: str, value: str) -> None:
    error = refusal(within(around, **{variable: value}))
    assert isinstance(error, Invalid)
    assert variable in error.sentence


def test_words_are_read_in_any_case(around: config.Surroundings) -> None:
    assert settings(within(around, KEEPWELL_LOG_LEVEL="DEBUG")).log_level == "debug"


FULL = """
[storage]
base_dir = "~/store"
journal_mode = "delete"
synchronous = "normal"
sqlite_busy_timeout_ms = 0
lock_deadline_ms = 60000
shared_mount = "no"
max_versions = 7
backup_retention_days = 8

[acl]
device_name = "dévice"
admin_devices = ["desk", "desk"]
device_categories = []

[log]
level = "info"
file = "~/keepwell.log"
"""


def encodings_that_are_read() -> list[bytes]:
    crlf = FULL.replace("\n", "\r\n")
    return [FULL.encode(), crlf.encode(), FULL.encode("utf-8-sig"), crlf.encode("utf-8-sig")]


@pytest.mark.parametrize("content", encodings_that_are_read(), ids=["plain", "crlf", "bom", "bom and crlf"])
def test_every_key_of_the_file_is_read_with_or_without_byte_order_mark_and_crlf(
    around: config.Surroundings, content: bytes
) -> None:
    found = settings(with_file(around, content))
    assert around.home
    assert found.base_dir == around.home / "store"
    assert (found.journal_mode, found.synchronous, found.shared_mount) == ("delete", "normal", "no")
    assert (found.sqlite_busy_timeout_ms, found.lock_deadline_ms) == (0, 60_000)
    assert (found.max_versions, found.backup_retention_days) == (7, 8)
    assert (found.admin_devices, found.device_categories) == (("desk",), ())
    assert (found.device, found.log_level, found.log_file) == ("dévice", "info", around.home / "keepwell.log")


def test_the_file_above_sets_every_setting_that_a_file_can_set() -> None:
    assert all(setting.file_key.partition(".")[2] in FULL for setting in config.SETTINGS if setting.file_key)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FULL.encode("utf-16"), "UTF-16"),
        (FULL.encode("utf-16-le"), "UTF-16"),
        (FULL.encode("utf-16-be"), "UTF-16"),
        (FULL.encode("utf-32"), "UTF-32"),
        (FULL.encode("latin-1"), "line 13 holds the byte 0xE9"),
        (b"[storage]\nbase_dir = \n", "line 2"),
        (b"[storage]\n[storage]\n", "line 2"),
        (b"x = " + b"[" * 50_000, "nested too deeply"),
    ],
    ids=["utf-16", "utf-16 le", "utf-16 be", "utf-32", "latin-1", "no value", "twice", "deep"],
)
def test_a_file_that_cannot_be_read_is_refused_by_name_with_encoding_or_line(
    around: config.Surroundings, content: bytes, said: str
) -> None:
    error = refusal(with_file(around, content))
    assert isinstance(error, Invalid)
    assert said in error.sentence
    assert str(error.facts["file"]).endswith("config.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[storage]\nbase_dri = "/x"\n', "Did you mean base_dir?"),
        ("[storage]\nlock_deadline = 1\n", "Did you mean lock_deadline_ms?"),
        ('[storge]\nbase_dir = "/x"\n', "Did you mean [storage]?"),
        ('base_dir = "/x"\n', "Did you mean [storage] base_dir?"),
        ('storage = "/x"\n', "Write [storage] on its own line."),
        ('[[storage]]\nbase_dir = "/x"\n', "Write [storage] on its own line."),
        ("[permissions]\nallow_write = true\n", "there is no table 'permissions'"),
        ("[storage]\nallow_write = true\n", "has no setting 'allow_write'"),
        ('["\\u001b[31m"]\n', r"'\x1b[31m'"),
    ],
)
def test_a_name_that_no_setting_knows_is_refused_with_the_nearest_one(
    around: config.Surroundings, content: str, said: str
) -> None:
    error = refusal(with_file(around, content))
    assert isinstance(error, Invalid)
    assert said in error.line
    assert error.line.isprintable()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[storage]\njournal_mode = "memory"\n', "wal, delete"),
        ("[storage]\njournal_mode = ['wal']\n", "wal, delete"),
        ("[storage]\nsynchronous = true\n", "full, normal"),
        ("[storage]\nlock_deadline_ms = 0\n", "from 1 to 600,000"),
        ('[storage]\nlock_deadline_ms = "10"\n', "whole number"),
        ("[storage]\nsqlite_busy_timeout_ms = true\n", "whole number"),
        ("[storage]\nsqlite_busy_timeout_ms = 1.5\n", "whole number"),
        ("[storage]\nbase_dir = 1\n", "must be text"),
        ('[storage]\nbase_dir = "/a\\u0000b"\n', "U+0000"),
        ('[acl]\ndevice_name = ""\n', "is empty"),
    ],
)
def test_a_bad_value_in_the_file_is_fatal_with_table_key_and_file(
    around: config.Surroundings, content: str, said: str
) -> None:
    error = refusal(with_file(around, content))
    table, key = content.splitlines()
    assert f"{table} {key.split()[0]}" in error.sentence
    assert said in error.sentence
    assert "file" in error.facts


def test_the_named_file_wins_then_xdg_then_the_home(around: config.Surroundings, tmp_path: Path) -> None:
    with_file(around, '[acl]\ndevice_name = "home"\n')
    xdg = tmp_path / "xdg" / "keepwell" / "config.toml"
    xdg.parent.mkdir(parents=True)
    xdg.write_text('[acl]\ndevice_name = "xdg"\n')
    named = tmp_path / "named.toml"
    named.write_text('[acl]\ndevice_name = "named"\n')
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "MCP_MEMORY_CONFIG": str(named)}
    assert settings(within(around, **variables)).device == "named"
    assert settings(within(around, XDG_CONFIG_HOME=str(tmp_path / "xdg"))).device == "xdg"
    assert settings(within(around, XDG_CONFIG_HOME=str(tmp_path / "none"))).device == "home"
    assert settings(within(around, XDG_CONFIG_HOME="xdg")).device == "home"


def test_a_named_file_that_is_missing_is_fatal(around: config.Surroundings) -> None:
    error = refusal(with_file(within(around, MCP_MEMORY_CONFIG="none.toml"), ""))
    assert isinstance(error, NotFound)
    assert "MCP_MEMORY_CONFIG" in error.sentence


def test_a_file_in_the_working_directory_is_not_looked_for(around: config.Surroundings) -> None:
    assert around.cwd
    for name in ("config.toml", "memory-config.toml", "keepwell.toml"):
        (around.cwd / name).write_text("[nonsense]\n")
    assert config.resolve({}, around).config_file is None


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_a_required_file_that_is_missing_is_fatal(around: config.Surroundings, word: str) -> None:
    here = within(around, MCP_MEMORY_REQUIRE_CONFIG=word)
    assert "MCP_MEMORY_REQUIRE_CONFIG=1" in refusal(here).sentence
    assert config.resolve({}, with_file(here, "")).config_file


@pytest.mark.parametrize("word", ["0", "false", "No", "off", ""])
def test_a_file_that_is_not_required_may_be_missing(around: config.Surroundings, word: str) -> None:
    assert config.resolve({}, within(around, MCP_MEMORY_REQUIRE_CONFIG=word)).config_file is None


def test_a_dangling_link_is_not_passed_over_as_no_file(around: config.Surroundings, tmp_path: Path) -> None:
    assert around.home
    link = around.home / ".config" / "keepwell" / "config.toml"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "gone.toml")
    assert isinstance(refusal(around), Denied)


def test_a_folder_or_a_pipe_is_not_read_as_a_file(around: config.Surroundings, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "pipe"):
        assert "not a regular file" in refusal(within(around, MCP_MEMORY_CONFIG=str(name))).sentence


def test_every_setting_says_in_one_or_two_sentences_what_it_is_for() -> None:
    for setting in config.SETTINGS:
        assert setting.doc.endswith(".")
        assert setting.flag or setting.variable or setting.file_key
        assert not setting.switch or (setting.flag and not setting.variable and not setting.file_key)
