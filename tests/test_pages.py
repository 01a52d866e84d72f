"""The pages and scripts that a newcomer meets: what they say to type works, what they point at exists."""

import hashlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import client_configuration
import pytest
from person import COMMAND, settle
from rawpipe import RawPipe

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path) -> None:
    me = settle(tmp_path)
    marked = re.search(r"<!-- tested -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert marked
    lines = marked[1].splitlines()
    assert len(lines) > 5
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "keepwell"
        assert me.see(*words), line
    assert (me.project / "memory-backup.db").exists()


FORMAT_ROWS = re.findall(
    r"^\| `(\{.*\})` \| (\d+) \| `([0-9a-f]{64})` \|$",
    (ROOT / "docs/explanation/file-format.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("document", "size", "sha256"), FORMAT_ROWS)
def test_the_vectors_of_the_file_format_are_what_lies_on_the_disk(
    tmp_path: Path, document: str, size: str, sha256: str
) -> None:
    me = settle(tmp_path)
    me.see("write", "vector", document)
    written = (me.database.parent / "categories" / "vector.json").read_bytes()
    assert (len(written), hashlib.sha256(written).hexdigest()) == (int(size), sha256)


def test_the_page_of_the_file_format_has_vectors() -> None:
    assert len(FORMAT_ROWS) == 4


def launches(block: client_configuration.Block, command: str) -> list[str]:
    """The words that a client starts after it read its block."""
    if block.language == "sh":
        words = shlex.split(block.text)
        return words[words.index("--") + 1 :]
    read: dict[str, Any] = tomllib.loads(block.text) if block.language == "toml" else json.loads(block.text)
    (servers,) = read.values()
    assert list(servers) == ["keepwell"]
    assert servers["keepwell"]["command"] == command
    return [servers["keepwell"]["command"], *servers["keepwell"]["args"]]


@pytest.mark.parametrize("number", range(len(client_configuration.blocks("/x"))))
def test_every_configuration_block_starts_a_server_that_may_write(tmp_path: Path, number: int) -> None:
    me = settle(tmp_path)
    command = str(Path(sys.executable).parent / "keepwell with \"quotes\" and 'spaces'")
    block = client_configuration.blocks(command)[number]
    program, *words = launches(block, command)
    assert program == command
    words = [str(me.project) if word == client_configuration.EDITOR_FOLDER else word for word in words]
    with RawPipe([*COMMAND, *words], env=me.environment, cwd=me.project) as server:
        server.initialize()
        lesson = {"text": "kept", "evidence": [{"description": "seen"}]}
        assert not server.call("memory_add", lesson).get("isError")
    assert me.ask("scopes")["scopes"][0]["path"] == str(me.project)


def test_the_configuration_page_is_what_the_script_prints() -> None:
    script = ROOT / "scripts" / "client_configuration.py"
    ran = subprocess.run([sys.executable, script, "/opt/keepwell"], capture_output=True, text=True, check=True)
    assert ran.stdout == client_configuration.page("/opt/keepwell") + "\n"
    assert all(f"{client}:" in ran.stdout for client in ("Claude Code", "Codex", "Cursor", "VS Code"))
