"""docs/api.md: its examples are run as they stand, and it names every address."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from konstruct.api.access import issue_key
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent
from tenants.models import Tenant
from tests.konstruct.api.live import serving
from tests.konstruct.api.routes import V1
from tests.konstruct.api.test_schema import paths_of_the_api

DOCUMENT = Path(settings.BASE_DIR) / "docs" / "api.md"
BLOCK = re.compile(r"^```(console|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- next example ---"


def blocks() -> list[tuple[str, str]]:
    """Return the console and JSON blocks of the page, in their order, but for the first.

    The first sets the environment, which is the test's own.
    """
    found = BLOCK.findall(DOCUMENT.read_text())
    assert found[0][1].startswith("$ export URL=http://localhost:8000/api/v1\n$ export KEY=")
    return found[1:]


def commands(console: str) -> str:
    """Return what is typed in a console, without the prompts."""
    return re.sub(r"^\$ ", "", console, flags=re.MULTILINE)


def shape(value: Any) -> Any:
    """Return what is alike in two answers of one kind: names and types."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_every_example_works_and_answers_as_is_shown(
    tenant_a: Tenant, process_environment: dict[str, str], tmp_path: Path
) -> None:
    create_agent(tenant_id=tenant_a.id, name="Ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_a.id, name="docs")
    script = "\n".join(
        f"echo; echo '{MARK}'; {commands(text)}" for kind, text in blocks() if kind == "console"
    )
    with serving(process_environment, tmp_path / "log", worker=True) as url:
        ran = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            env={**process_environment, "URL": url + V1.rstrip("/"), "KEY": str(key)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout
    answers = iter(ran.stdout.split(MARK)[1:])
    answer = ""
    for kind, text in blocks():
        if kind == "console":
            answer = next(answers)
        else:
            assert shape(json.loads(answer)) == shape(json.loads(text)), answer


def test_every_address_is_on_the_page() -> None:
    page = DOCUMENT.read_text()
    in_words = {"context/compile", "sessions"}
    for path in paths_of_the_api():
        stem = re.sub(r"/?\{\w+\}.*", "", path.removeprefix(V1)).strip("/")
        assert f"$URL/{stem}/" in page or stem in in_words, path


@pytest.mark.parametrize("scope", KeyScope.values)
def test_every_scope_is_on_the_page(scope: str) -> None:
    assert f"`--scope {scope}`" in DOCUMENT.read_text()
