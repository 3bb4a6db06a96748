"""Loops of the product end, and a comment gives the reason."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("konstruct", "memory", "tenants", "clients/python/src")
REASON = re.compile(r"\s*# Ends: \S")
# Lines of a comment above its loop.
MAX_LINES = 3


def lines_without_a_reason(source: str) -> list[int]:
    lines = source.split("\n")
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        if not any(map(REASON.match, lines[max(node.lineno - 1 - MAX_LINES, 0) : node.lineno]))
    ]


def test_loop_with_a_constant_condition_documents_its_end() -> None:
    """`while True:` has a comment above it that begins with "Ends:"."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 500
    found = {path: lines_without_a_reason(path.read_text()) for path in files}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}


def test_the_check_finds_a_loop_without_a_reason() -> None:
    source = "while True:\n    a()\n\n\n\n# Ends: at b.\nwhile 1:\n    b()\nwhile c():\n    d()\n"
    assert lines_without_a_reason(source) == [1]
