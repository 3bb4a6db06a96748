"""Processes of the owner's, for tests of what several do at once, and of killed ones."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def start(process_environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start Python with code as the owner, past its imports; end what runs after the test."""
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
