"""The Dockerfile and the Compose files, checked by hadolint, checkov and the Compose schema."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.konstruct.running import PROJECT

pytestmark = pytest.mark.long

VALIDATE = """
import json, sys
import compose_spec
compose = compose_spec.PyCompose.from_json(sys.stdin.read())
compose.validate()
print(len(compose))
"""
NOT_CHECKED = {"CKV_DOCKER_7": "the tag is that of ARG PYTHON_IMAGE, a full version"}


def merged(below: Any, above: Any) -> Any:
    """Return the content of a Compose file merged with another one."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = {name: merged(below[name], above[name]) for name in below.keys() & above.keys()}
    return {**below, **above, **both}


def compose(*names: str) -> Any:
    """Return the merged Compose files, with defaults or an x instead of variables."""
    content: Any = {}
    for name in names:
        text = (PROJECT / name).read_text()
        filled = re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda found: found[1] or "x", text)
        content = merged(content, yaml.safe_load(filled))
    return content


def test_hadolint_reports_no_findings(run_check: Callable[..., str]) -> None:
    assert run_check("hadolint", "Dockerfile") == ""


def test_checkov_reports_only_explained_findings(run_check: Callable[..., str]) -> None:
    report = json.loads(
        run_check(
            "checkov", "--file", "Dockerfile", "--framework", "dockerfile", "--skip-download",
            "--output", "json", "--soft-fail",
        )
    )  # fmt: skip
    failed = {check["check_id"] for check in report["results"]["failed_checks"]}
    assert failed == set(NOT_CHECKED)
    assert report["summary"]["passed"] > 50


@pytest.mark.parametrize(
    ("files", "services"),
    [
        (("docker-compose.yml",), 11),
        (("docker-compose.yml", "deploy/compose.servers.yml"), 16),
    ],
)
def test_compose_files_keep_to_the_specification(
    run_check: Callable[..., str], files: tuple[str, ...], services: int
) -> None:
    data = json.dumps(compose(*files))
    assert run_check("python", "-c", VALIDATE, data=data) == f"{services}\n"
