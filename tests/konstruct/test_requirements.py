"""requirements/*.lock: complete, within the ranges, and used by every installation."""

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.konstruct.running import PROJECT

FOLDER = PROJECT / "requirements"
# Each with the files of its ranges.
LOCKS = {
    "base": ("base", "weights"),
    "embedded": ("embedded", "weights"),
    "models": ("base", "models", "weights"),
    "dev": ("dev", "weights"),
    "tracing": ("tracing",),
}
# pyproject.toml gives the reason of these omissions.
LEFT_OUT = {"torch"}
PIN = re.compile(r"([a-z\d.-]+)==(\S+)(?: ; ([^\\]+?))?((?: \\\n    --hash=sha256:[\da-f]{64})+)\n")
ENVIRONMENTS = [
    {
        "python_version": version,
        "python_full_version": f"{version}.7",
        "sys_platform": system,
        "platform_machine": machine,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    for version, (system, machine) in product(
        ("3.11", "3.12", "3.13", "3.14"), (("linux", "x86_64"), ("darwin", "arm64"))
    )
]


def pinned(lock: str) -> list[tuple[str, Version, str]]:
    """Return name, version and marker of each package of a lock file."""
    text = (FOLDER / f"{lock}.lock").read_text()
    return [
        (found[1], Version(found[2]), found[3] or "")
        for found in PIN.finditer(text, text.index("\n", text.index("make lock")))
    ]


def versions(lock: str, environment: dict[str, str]) -> dict[str, Version]:
    """Return the packages that pip installs from there."""
    found = {}
    for name, version, marker in pinned(lock):
        if not marker or Requirement(f"{name} ; {marker}").marker.evaluate(environment):  # type: ignore[union-attr]
            assert name not in found, f"{lock}.lock has two versions of {name}"
            found[name] = version
    return found


def ranges(name: str) -> Iterator[Requirement]:
    """Return the requirements of a file and of its included files."""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("-r "):
            yield from ranges(line.removeprefix("-r ").removesuffix(".txt"))
        elif line:
            yield Requirement(line)


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_file_contains_only_versions_and_hashes(lock: str) -> None:
    lines = (FOLDER / f"{lock}.lock").read_text().splitlines(keepends=True)
    rest = "".join(line for line in lines if not line.startswith("#"))
    assert PIN.sub("", rest) == ""  # no index URL, path or option
    assert pinned(lock)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_keeps_to_the_ranges_on_each_python(lock: str) -> None:
    required = [requirement for name in LOCKS[lock] for requirement in ranges(name)]
    for environment in ENVIRONMENTS:
        locked = versions(lock, environment)
        for requirement in required:
            name = canonicalize_name(requirement.name)
            if name not in LEFT_OUT:
                assert locked[name] in requirement.specifier, f"{requirement}: run make lock"


def test_all_environments_have_the_same_versions() -> None:
    for environment in ENVIRONMENTS:
        locked = {lock: versions(lock, environment) for lock in LOCKS}
        base, embedded, models, tracing, dev = (
            locked[name] for name in ("base", "embedded", "models", "tracing", "dev")
        )
        assert tracing.items() < dev.items()
        assert base.items() < embedded.items() < dev.items()
        assert base.items() < models.items() < dev.items()
    assert {name for name, _, _ in pinned("base")}.isdisjoint({"sentence-transformers", "nvidia"})


def test_each_environment_is_installed_from_its_lock_file() -> None:
    dockerfile, makefile = ((PROJECT / name).read_text() for name in ("Dockerfile", "Makefile"))
    for lock in ("base", "tracing", "models"):
        assert (
            f"pip install --no-cache-dir --no-deps --require-hashes -r /tmp/{lock}.lock"
            in dockerfile
        )
    assert "INSTALL_LOCKED = $(INSTALL) --no-deps --require-hashes -r\n" in makefile
    installed = re.findall(r"@\$\((INSTALL\w*)\)(?: -r)? (\S+)", makefile)
    assert installed == [
        ("INSTALL_LOCKED", "requirements/embedded.lock"),
        ("INSTALL_LOCKED", "requirements/dev.lock"),
        ("INSTALL", "requirements/models.txt"),
    ]


@pytest.mark.slow
def test_make_names_the_package_that_a_python_without_venv_lacks(tmp_path: Path) -> None:
    """As on Debian without python3-venv. After its installation make continues."""
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()  # left by an earlier attempt

    command = ["make", "--no-print-directory", "--file", str(PROJECT / "Makefile"), ".venv/bin/pip"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MAKEFLAGS": ""}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stderr.splitlines()[0].endswith("python3-venv, then run make again")
    assert (ran.returncode, ran.stdout) == (2, "")
    dry_run = subprocess.run([*command, "--dry-run"], cwd=tmp_path, capture_output=True, check=True)
    assert b"-m venv .venv" in dry_run.stdout
