"""Fixtures of archives."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a file that does not exist."""
    return tmp_path / "memory.db"
