"""Import modules of the version in the current folder, under their names in that version.

A script of this version that runs with another version's Python finds this module beside itself,
not in a package.
"""

import importlib
import sys
from pathlib import Path
from typing import Any


def use_version_in(root: Path) -> None:
    """Import from the folder of that version; from these tools only what it lacks.

    The benchmarks of earlier versions were in one folder, and imported each other from there.
    """
    flat = root / "benchmarks"
    sys.path[:0] = [str(root), *([str(flat)] if (flat / "throwaway.py").exists() else [])]


def first_of(*names: str) -> Any:
    """Return the first of these modules that the version has."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or name):
                raise
    sys.exit(f"the version in {Path.cwd()} has none of {', '.join(names)}")
