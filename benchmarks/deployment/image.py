"""Measure the size of the Python environment of the image, by package.

    python -m benchmarks.deployment.image

The script installs the packages of the Dockerfile into a temporary directory. It counts the files
of this project, but not the base image.
"""

import argparse
import subprocess
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).resolve().parents[2]
LARGEST = 12
MEGABYTE = 2**20


def main() -> None:
    """Install and measure."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    with TemporaryDirectory() as directory:
        environment = Path(directory)
        venv.create(environment, with_pip=True)
        install(environment, "--no-deps", "--require-hashes", "-r", "requirements/base.lock")
        (packages,) = environment.glob("lib/python*/site-packages")
        sizes = {path.name: size(path) for path in packages.iterdir()}
        for name, bytes_ in sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST]:
            print(f"{name:<28}{bytes_ / MEGABYTE:>6.0f} MB")
        rest = sum(sorted(sizes.values())[:-LARGEST])
        print(f"{len(sizes) - LARGEST} others{'':<18}{rest / MEGABYTE:>6.0f} MB")
        print(f"{'the environment':<28}{size(environment) / MEGABYTE:>6.0f} MB")
    code = sum(size(PROJECT / name) for name in ("deploy", "konstruct", "memory", "tenants"))
    print(f"{'the code':<28}{code / MEGABYTE:>6.0f} MB")


def install(environment: Path, *arguments: str) -> None:
    """Install with the pip of the current environment."""
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", *arguments], cwd=PROJECT, check=True)


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file() or file.is_symlink())


if __name__ == "__main__":
    main()
