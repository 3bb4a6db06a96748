"""Processes of the owner, for tests of concurrent and killed processes."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def start(process_environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start Python code as the owner, wait for its imports, and end it after the test."""
    with contextlib.ExitStack() as ends:

        def start(code: str, *arguments: str) -> "subprocess.Popen[str]":
            process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                env={**process_environment, "KONSTRUCT_DB_ROLE": "owner"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert process.stdout is not None
            ends.callback(process.stdout.close)
            ends.callback(process.wait)
            ends.callback(process.kill)
            assert process.stdout.readline() == "begins\n"
            return process

        yield start
