"""The generated pages: current, and complete."""

import re
from pathlib import Path

import pytest

from keepwell.config import SETTINGS, resolve
from keepwell.config.values import Surroundings
from keepwell.model.errors import CODES
from keepwell.operations import OPERATIONS
from keepwell.surfaces import reference

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.fixture(autouse=True)
def _usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", list(reference.pages()))
def test_a_committed_page_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == reference.pages()[name], "run: python -m keepwell.surfaces.reference docs/reference"


def test_every_tool_command_setting_and_error_code_is_documented() -> None:
    pages = reference.pages()
    for operation in OPERATIONS:
        assert operation.tool is None or f"## {operation.tool}\n" in pages["tools.md"]
        assert operation.command is None or f"## keepwell {operation.command}\n" in pages["commands.md"]
    assert all(f"## {setting.name}\n" in pages["settings.md"] for setting in SETTINGS)
    assert all(f"| `{code}` |" in pages["errors.md"] for code in CODES)


def test_the_example_configuration_names_every_setting_and_works_with_all_of_them_switched_on(tmp_path: Path) -> None:
    example = reference.pages()["config.example.toml"]
    file = tmp_path / "config.toml"
    file.write_text(re.sub(r"(?m)^# (\w+ = )", r"\1", example), encoding="utf-8")
    around = Surroundings({"MCP_MEMORY_CONFIG": str(file)}, tmp_path, tmp_path, "host")
    chosen = resolve({}, around).chosen
    assert chosen >= {setting.name for setting in SETTINGS if setting.file_key}


def test_check_names_a_page_that_is_not_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main([str(tmp_path)]) == 0
    assert reference.main([str(tmp_path), "--check"]) == 0
    (tmp_path / "tools.md").write_text("old", encoding="utf-8")
    assert reference.main([str(tmp_path), "--check"]) == 1
    assert "tools.md" in capsys.readouterr().err
