"""docker-compose.yml: complete, checked for health, and without a secret of its own."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.konstruct.running import PROJECT

TEXT = (PROJECT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
OURS = ("migrate", "web", "worker", "beat", "owner")


def test_the_services_are_those_of_the_real_thing() -> None:
    assert set(SERVICES) == {"postgres", "valkey", *OURS}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_each_service_that_stays_has_a_health_check_and_comes_back(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", ["web", "worker", "beat", "owner"])
def test_nothing_serves_before_the_schemas_are_migrated(name: str) -> None:
    conditions = {other: on["condition"] for other, on in SERVICES[name]["depends_on"].items()}
    assert conditions == {
        "migrate": "service_completed_successfully",
        "postgres": "service_healthy",
        "valkey": "service_healthy",
    }


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_what_serves_does_not_know_the_owner(name: str) -> None:
    environment = yaml.dump(SERVICES[name])
    assert "OWNER" not in environment
    assert "konstruct_app:" in environment


def test_without_a_secret_it_does_not_start_and_the_example_names_each() -> None:
    required = set(re.findall(r"\$\{(\w+):\?", TEXT))
    secrets = set(re.findall(r"\$\{(\w*(?:PASSWORD|SECRET_KEY))\b", TEXT))
    assert secrets == {
        "POSTGRES_PASSWORD",
        "KONSTRUCT_OWNER_PASSWORD",
        "KONSTRUCT_APP_PASSWORD",
        "SECRET_KEY",
    }
    assert secrets <= required
    example = (PROJECT / "deploy" / "compose.env.example").read_text()
    named = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert required <= set(named)
    assert {named[name] for name in secrets} == {""}


def test_every_setting_that_is_passed_is_a_documented_one() -> None:
    documented = set(re.findall(r"^\| `(\w+)`", (PROJECT / "docs/settings.md").read_text(), re.M))
    passed = {name for service in OURS for name in SERVICES[service]["environment"]}
    assert passed <= documented


def test_the_image_takes_what_exists_and_what_the_build_may_see() -> None:
    seen = {
        line[1:]
        for line in (PROJECT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = re.findall(r"^COPY (?!--from)(\S+) ", (PROJECT / "Dockerfile").read_text(), re.M)
    assert set(copied) == seen
    assert [name for name in copied if not Path(PROJECT, name).exists()] == []
