"""Draws the packages and the rooms in them, from the import contracts, into docs/contributing.md.

``python -m tests.documentation.house`` writes the drawing. A test compares it.
"""

import ast
import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing.md"
START = "<!-- drawn by python -m tests.documentation.house -->\n"
END = "<!-- end of the drawing -->"


def floors() -> dict[str, list[list[str]]]:
    """Return the floors of each package, the highest first, each with its rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    found = {}
    for contract in contracts["contracts"]:
        if contract["type"] == "layers":
            layers = [layer.split(" | ") for layer in contract["layers"]]
            found[contract.get("containers", [""])[0]] = layers
    return found


def purpose(module: str) -> str:
    """Return the first sentence of a module's docstring, without its full stop."""
    path = ROOT / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text())) or ""
    return re.split(r"\.\s", " ".join(docstring.split()) + " ")[0]


def drawing() -> str:
    """Return the drawing: packages from top to bottom, and the floors inside of each."""
    inside = floors()
    lines = []
    for package in chain.from_iterable(inside.pop("")):
        lines.append(f"{package:27} {purpose(package)}")
        for rooms in inside.get(package, []):
            for number, room in enumerate(rooms):
                branch = "├─" if number == 0 else "│ "
                lines.append(f"{branch} {room:24} {purpose(f'{package}.{room}')}")
    return "```\n" + "\n".join(lines) + "\n```\n"


def page_with_drawing() -> str:
    """Return docs/contributing.md with the drawing of today."""
    before, rest = PAGE.read_text().split(START)
    return before + START + drawing() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with_drawing())
