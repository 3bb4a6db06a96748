"""openapi-typescript makes types of the description that a program can be written with."""

import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

HERE = Path(__file__).parent
NPM = shutil.which("npm")
PACKAGES = ("openapi-typescript@^7.13", "typescript@^5.9")

# It installs packages. What it needs of the description is in test_schema.py of the API.
pytestmark = [pytest.mark.long, pytest.mark.slow]


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(NPM is None, reason="there is no npm")
def test_a_program_compiles_with_the_types_of_the_description(tmp_path: Path) -> None:
    description = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"
    shutil.copy(HERE / "usage.ts", tmp_path)
    run(tmp_path, "npm", "install", "--no-audit", "--no-fund", "--prefix", ".", *PACKAGES)
    installed = tmp_path / "node_modules" / ".bin"
    run(tmp_path, str(installed / "openapi-typescript"), str(description), "-o", "api.ts")
    run(tmp_path, str(installed / "tsc"), "--noEmit", "--strict", "--skipLibCheck", "usage.ts")
