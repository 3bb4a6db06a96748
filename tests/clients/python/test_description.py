"""The Python client has every operation of the OpenAPI description, and imports no server code."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from konstruct_client import errors

from konstruct.api.http import problems
from tests.clients.python import documents

CHANNEL = Path(settings.BASE_DIR, "konstruct", "channels", "rest").rglob("*.py")
SOURCE = documents.MODULE.parent


@pytest.mark.slow
def test_the_documents_are_those_of_the_description() -> None:
    assert documents.MODULE.read_text() == documents.written(), (
        "run: .venv/bin/python -m tests.clients.python.documents"
    )


def test_every_type_of_problem_has_an_error() -> None:
    kinds = {kind.removeprefix(problems.TYPE_PREFIX) for kind, _ in problems.PROBLEM_TYPES}
    assert set(errors.BY_KIND) == kinds - {"missing-slash"}  # of a redirect
    for source in (*Path(settings.BASE_DIR, "konstruct", "api").rglob("*.py"), *CHANNEL):
        used = set(re.findall(r'Problem\(\s*\d+,\s*"([a-z-]+)"', source.read_text()))
        assert used - kinds == set()


def test_client_imports_nothing_of_the_server() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = [*ast.walk(ast.parse(path.read_text()))]
        names = [node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module]
        names += [name.name for node in tree if isinstance(node, ast.Import) for name in node.names]
        roots = {name.partition(".")[0] for name in names}
        assert (path, roots & {"konstruct", "memory", "tenants", "django"}) == (path, set())


@pytest.mark.long
def test_the_wheel_is_built_without_the_development_environment(tmp_path: Path) -> None:
    """`make wheel` needs this Makefile, the client's folder and a build backend in PYTHONPATH."""
    shutil.copy(Path(settings.BASE_DIR, "Makefile"), tmp_path)
    project = SOURCE.parents[1]
    shutil.copytree(
        project,
        tmp_path / "clients" / "python",
        ignore=shutil.ignore_patterns("dist", "__pycache__"),
    )
    environment = os.environ | {
        "PIP_NO_BUILD_ISOLATION": "0",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = ["make", "wheel", f"PYTHON={sys.executable}"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert not (tmp_path / ".venv").exists()
    (wheel,) = tmp_path.glob("clients/python/dist/konstruct_client-*-py3-none-any.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source_files = [
        path for path in SOURCE.rglob("*") if path.suffix == ".py" or path.name == "py.typed"
    ]
    assert packed == {str(path.relative_to(SOURCE.parent)) for path in source_files}
    # Installed in an empty environment, without the registry: httpx is that of the tests.
    environment["PIP_NO_INDEX"] = "1"
    python = tmp_path / "agents" / "bin" / "python"
    program = (
        "import konstruct_client as k; k.Client('http://x', 'ks_x').close(); print(k.__file__)"
    )
    for command in (
        [sys.executable, "-m", "venv", str(tmp_path / "agents")],
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)],
        [str(python), "-c", program],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
    assert done.stdout.startswith(str(tmp_path / "agents"))
