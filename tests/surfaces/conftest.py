"""Fixtures of the surfaces' tests."""

from pathlib import Path

import pytest
from realserver import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A store and projects of this test's own."""
    return Place(tmp_path)
