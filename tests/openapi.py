"""The API's description as it is committed, for tests that go by it."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def described() -> dict[str, Any]:
    """Return docs/openapi.yaml. It is read once for all tests of a process."""
    text = (Path(__file__).parents[1] / "docs" / "openapi.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)
