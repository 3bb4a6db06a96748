"""docs/examples/support_bot.py: a user, a person behind another program, and real processes."""

import signal
import socket
import subprocess
import sys

import pytest

from tests.end_to_end.deployment import PROJECT, Deployment, eventually

pytestmark = pytest.mark.slow

BOT = PROJECT / "docs" / "examples" / "support_bot.py"


def test_a_person_behind_another_program_answers_the_user(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
    environment = {
        **deployment.environment,
        "KONSTRUCT_URL": deployment.url,
        "KONSTRUCT_KEY": tenant.key,
    }

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, str(BOT), *arguments],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def lines(process: "subprocess.Popen[str]", until: str) -> list[str]:
        read = []
        while not read or read[-1] != until:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, read
            read.append(line.strip())
        return read

    with start("desk", url) as desk:
        try:
            lines(desk, "waiting for users")
            with start("ask", "ben", "I want to talk to a human") as first:
                assert "person" in first.communicate(timeout=120)[0]
            shown = lines(desk, "answer ben:")
            assert "user: I want to talk to a human" in shown
            with start("ask", "ben", "My parcel is lost.") as second:
                held = "SELECT 1 FROM tenants_job WHERE kind = 'reply' AND held_for = 'person'"
                eventually(lambda: tenant.rows(held), "the message is not held")
                assert desk.stdin is not None
                desk.stdin.write("I have found it.\n")
                desk.stdin.flush()
                lines(desk, "answered")
                said = second.communicate(timeout=120)[0]
            assert said == "Eva: I have found it.\n"
        finally:
            desk.send_signal(signal.SIGINT)
