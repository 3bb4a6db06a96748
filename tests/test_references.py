"""References of docstrings and comments to other code: what they name exists."""

import ast
import importlib
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

pytestmark = pytest.mark.slow

ROOT = Path(settings.BASE_DIR)
PACKAGES = ("konstruct", "memory", "tenants")
FILE = re.compile(
    r"(?<![\w/.`-])(?:konstruct|memory|tenants|tests|docs|deploy|benchmarks)/[\w./-]*\w|\btest_\w+\.py"
)
# Of Django, LangGraph and Postgres.
OF_LIBRARIES = frozenset(
    {"truncatechars", "invoke", "ainvoke", "db_comment", "ContentTypeManager", "_like"}
)
NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*?\))?`(?!`)")


def files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def texts(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)  # the docstring of a field
    with path.open("rb") as file:
        tokens = tokenize.tokenize(file.readline)
        comments = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    yield " ".join(comments)


@cache
def words() -> frozenset[str]:
    """Return the words of the code of the product, without those texts."""
    found: set[str] = set()
    for path in files():
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            for field in ("id", "attr", "name", "arg", "module", "value"):
                if isinstance(value := getattr(node, field, None), str) and "`" not in value:
                    found.update(re.findall(r"\w+", value))
    return frozenset(found)


def is_known_file(name: str) -> bool:
    if name.startswith("test_"):
        return any((ROOT / "tests").rglob(name))
    return bool(list(ROOT.glob(name + "*"))) or bool(list(ROOT.glob(name + ".py")))


def is_known_name(name: str) -> bool:
    first, *rest = name.split(".")
    if first in PACKAGES and rest:
        return is_importable(name)
    return all(part in words() | OF_LIBRARIES for part in (first, *rest))


def is_importable(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_files_and_names_of_docstrings_exist() -> None:
    missing = []
    for path in files():
        for text in texts(path):
            missing += [
                f"{path.relative_to(ROOT)}: {name}"
                for name in FILE.findall(text)
                if not is_known_file(name)
            ]
            missing += [
                f"{path.relative_to(ROOT)}: `{name}`"
                for name in NAME.findall(text)
                if not is_known_name(name)
            ]
    assert missing == []


@pytest.mark.parametrize("name", ["Makefile", ".ci/run"])
def test_tests_that_are_run_by_path_exist(name: str) -> None:
    paths = re.findall(r"(?<![\w/])tests/[\w/]+(?:\.py)?", (ROOT / name).read_text())
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
