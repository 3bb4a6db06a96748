"""A short run of the load test, as a command: locust must not be imported into pytest's process."""

import shutil
import subprocess
import sys

import pytest

from tests.konstruct.running import PROJECT

pytestmark = pytest.mark.long


def run(*arguments: str, module: str = "benchmarks.load") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_short_run_behind_the_proxy_has_no_lost_or_foreign_replies() -> None:
    ran = run("limits", "--users", "24", "--seconds", "8", "--history", "8")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "verify_memory: nothing is wrong" in ran.stdout
    for call in ("send, wait", "send, stream", "recall", "OpenAI"):
        assert f"\n  {call} " in ran.stdout, ran.stdout


def test_help_names_the_layouts_and_a_layout_that_there_is_not_is_refused() -> None:
    assert "LAYOUT" in run("--help").stdout
    refused = run("three")
    assert (refused.returncode, "no layout is called three" in refused.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no Prometheus")
def test_killed_processes_raise_alerts_and_no_reply_is_lost() -> None:
    ran = run(module="benchmarks.load.kills")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("nothing is wrong\n")
