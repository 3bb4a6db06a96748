"""The Python client has all that the API's description has, and nothing of the server."""

import ast
import inspect
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from konstruct_client import Client, errors
from konstruct_client._methods import Method

from konstruct.api.http import exceptions
from konstruct.api.http.errors import problems
from tests.clients.python import documents

CHANNEL = Path(settings.BASE_DIR, "konstruct", "channels", "rest").rglob("*.py")
SOURCE = documents.MODULE.parent


@pytest.mark.slow
def test_the_documents_are_those_of_the_description() -> None:
    assert documents.MODULE.read_text() == documents.written(), (
        "run: .venv/bin/python -m tests.clients.python.documents"
    )


def test_every_operation_has_a_call() -> None:
    """Each is called with something for what it needs, and says where it would be sent."""
    with Client("http://localhost", "ks_") as konstruct:
        described = {
            _operation(attribute, resource)
            for resource in vars(konstruct).values()
            for attribute in vars(type(resource)).values()
            if isinstance(attribute, Method)
        }
    operations = {
        (method.upper(), path.removeprefix("/api/v1/"))
        for path, methods in documents.API["paths"].items()
        for method in methods
    }
    assert {(method, re.sub(r"{\w+}", "x", path)) for method, path in operations} == described


def given(name: str) -> object:
    return [] if name in ("items", "messages", "values", "writes") else "x"


def _operation(attribute: "Method[..., object]", resource: object) -> tuple[str, str]:
    parameters = list(inspect.signature(attribute.describe).parameters.values())[1:]
    needed = [each for each in parameters if each.default is each.empty]
    positional = [each.name for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    args = [given(name) for name in positional]
    options = {each.name: given(each.name) for each in needed if each.kind is each.KEYWORD_ONLY}
    described = attribute.describe(resource, *args, **options)
    return described.method, described.path


def test_every_type_of_problem_has_an_error() -> None:
    kinds = {kind for kind, _ in problems._BY_STATUS.values()}
    kinds |= {kind for _, kind, _ in exceptions.OWN_ERRORS.values()}
    for source in (*Path(settings.BASE_DIR, "konstruct", "api").rglob("*.py"), *CHANNEL):
        kinds |= set(re.findall(r'Problem\(\s*\d+,\s*"([a-z-]+)"', source.read_text()))
    assert set(errors.BY_KIND) == kinds


@pytest.mark.parametrize("path", [*SOURCE.rglob("*.py")], ids=lambda path: path.stem)
def test_nothing_of_the_server_is_imported(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text()))
    names = [each.module for each in tree if isinstance(each, ast.ImportFrom) and each.module]
    names += [alias.name for each in tree if isinstance(each, ast.Import) for alias in each.names]
    roots = {name.partition(".")[0] for name in names}
    assert not roots & {"konstruct", "memory", "tenants", "django"}


@pytest.mark.slow
def test_the_wheel_has_the_package_and_its_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=SOURCE.parents[1], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("konstruct_client-*-py3-none-any.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = [path for path in SOURCE.rglob("*") if path.suffix == ".py" or path.name == "py.typed"]
    assert packed == {str(path.relative_to(SOURCE.parent)) for path in ours}
