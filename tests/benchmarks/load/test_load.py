"""A short run of the load, as a command: locust must not be imported into pytest's process."""

import subprocess
import sys

import pytest

from tests.konstruct.running import PROJECT

COMMAND = [sys.executable, "-m", "benchmarks.load"]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_short_run_behind_the_proxy_loses_and_crosses_nothing() -> None:
    ran = run("limits", "--users", "24", "--seconds", "8", "--history", "8")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "verify_memory: nothing is wrong" in ran.stdout
    for call in ("send, wait", "send, stream", "recall", "OpenAI"):
        assert f"\n  {call} " in ran.stdout, ran.stdout


@pytest.mark.slow
def test_help_names_the_layouts_and_a_layout_that_there_is_not_is_refused() -> None:
    assert "LAYOUT" in run("--help").stdout
    refused = run("three")
    assert (refused.returncode, "no layout is called three" in refused.stderr) == (2, True)
