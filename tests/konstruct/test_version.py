"""One version: of the product, its chart, its clients, its descriptions and its changelog."""

import json
import re
import tomllib
from pathlib import Path

import yaml
from django.conf import settings

from konstruct import __version__
from konstruct.interfaces.mcp.protocol import SERVER

ROOT = Path(settings.BASE_DIR)


def test_every_part_has_the_version_of_the_product() -> None:
    assigned = re.compile(r'VERSION(?:__)? = "(.*)"', re.IGNORECASE)
    chart = yaml.safe_load((ROOT / "deploy/helm/konstruct/Chart.yaml").read_text())
    found = {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "Python client": assigned.findall(
            (ROOT / "clients/python/src/konstruct_client/_version.py").read_text()
        )[0],
        "TypeScript client": json.loads((ROOT / "clients/typescript/package.json").read_text())[
            "version"
        ],
        "its code": assigned.findall((ROOT / "clients/typescript/src/version.ts").read_text())[0],
        "chart": chart["version"],
        "image": chart["appVersion"],
        "OpenAPI": yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["info"]["version"],
        "MCP": SERVER["version"],
    }
    assert found == dict.fromkeys(found, __version__)


def test_the_changelog_has_the_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", __version__]
