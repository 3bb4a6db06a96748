"""Run the commands of docs/install-debian.md in an empty Debian, up to a working deployment."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.documentation.blocks import Block, blocks
from tests.konstruct.running import PROJECT, eventually

PAGE = PROJECT / "docs" / "install-debian.md"
UNITS = PROJECT / "deploy" / "systemd"
RELEASE = "trixie"
TOOLS = ("debootstrap", "unshare", "nsenter", "ip", "mount", "apt-get")
PATHS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=PATHS) is None]
# Commands that need the network. The others only have a loopback interface.
FETCHES = re.compile(r"\b(apt-get|pip install)\b")
BUNDLE = "/etc/certificates-of-the-host.crt"
# In namespaces that end with this process: a loopback, its processes and its mounts.
HOLD = """
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
ip link set lo up
exec sleep infinity
"""
# Each block runs in a new shell, in the working directory of the previous one.
RUN = """
set -euo pipefail
cd "$(cat /root/folder)"
. /root/variables
{commands}
for name in {names}; do if [ -v "$name" ]; then declare -p "$name"; fi; done >/root/variables
pwd >/root/folder
"""
NAMES = " ".join(sorted(set(re.findall(r"\b([A-Z][A-Z_]+)=", PAGE.read_text()))))


def analyzer() -> str | None:
    return shutil.which("systemd-analyze")


@pytest.mark.long
@pytest.mark.skipif(analyzer() is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit", sorted(UNITS.glob("*.service")), ids=lambda path: path.name)
def test_a_unit_confines_its_process(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@8000")
    copy.write_text(unit.read_text())
    command = [str(analyzer()), "security", "--offline=yes", "--threshold=25", "--no-pager", copy]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr


def test_units_differ_only_in_their_commands() -> None:
    confined = [
        re.sub(r"(?s)^.*?(?=# Shared by all units)", "", unit.read_text())
        for unit in UNITS.glob("*.service")
    ]
    assert len(confined) == 5
    assert len(set(confined)) == 1
    with_owner = [unit.name for unit in UNITS.rglob("*") if "konstruct/owner" in _text(unit)]
    assert sorted(with_owner) == ["konstruct-backup.service", "konstruct-owner.service"]


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def test_the_target_starts_each_unit() -> None:
    expected = set(
        re.findall(r"konstruct-[\w@.]+?\.service", (UNITS / "konstruct.target").read_text())
    )
    templates = {re.sub(r"@\w+", "@", name) for name in expected}
    assert templates | {"konstruct-backup.service"} == {
        unit.name for unit in UNITS.glob("*.service")
    }
    for folder in UNITS.glob("*.d"):
        assert folder.name.removesuffix(".d") in expected


class Debian:
    """A Debian in a folder, with its own namespaces."""

    def __init__(self, root: Path, ends: ExitStack) -> None:
        self._root = root
        command = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child"]
        holder = psutil.Popen([*command, "sh", "-c", HOLD, "sh", root])
        ends.callback(holder.wait, 60)
        ends.callback(holder.kill)
        eventually(lambda: bool(holder.children()) and holder.children()[0].name() == "sleep")
        self._inside = str(holder.children()[0].pid)
        (root / "root" / "variables").touch()
        (root / "root" / "folder").write_text("/root")

    def run(self, commands: str, *, with_network: bool) -> str:
        """Run commands in a root shell, and return their output.

        Raises:
            AssertionError: one of them fails.
        """
        spaces = [
            "--target",
            self._inside,
            "--mount",
            "--pid",
            *([] if with_network else ["--net"]),
        ]
        program = RUN.format(commands=commands, names=NAMES)
        ran = subprocess.run(
            ["nsenter", *spaces, "chroot", self._root, "/bin/bash", "-c", program],  # noqa: S607
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{commands}\n{ran.stdout[-4000:]}\n{self._logs()}"
        return ran.stdout

    def _environment(self) -> dict[str, str]:
        """Return the environment of an operator, and the pip settings of this machine."""
        of_pip = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("PIP_") and "://" in value
        }
        if (self._root / BUNDLE[1:]).exists():
            of_pip |= {"PIP_CERT": BUNDLE, "SSL_CERT_FILE": BUNDLE}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", **of_pip}

    def _logs(self) -> str:
        logs = sorted((self._root / "var" / "log" / "units").glob("*.log"))
        return "\n".join(f"== {log.name}\n{log.read_text()[-1500:]}" for log in logs)


@contextmanager
def empty_debian(folder: Path) -> Iterator[Debian]:
    """Create a Debian with an archive of this code and a systemctl."""
    root = folder / "debian"
    sources = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    mirrors = subprocess.run(
        [*sources, "Origin: Debian"], capture_output=True, text=True, check=True
    )
    mirror = next(iter(mirrors.stdout.split()), "")
    with ExitStack() as ends:
        ends.callback(shutil.rmtree, root, ignore_errors=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", RELEASE, root, *([mirror] if mirror else [])],  # noqa: S607
            env={**os.environ, "PATH": PATHS},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        shutil.copy("/etc/resolv.conf", root / "etc")
        if bundle := os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE"):
            shutil.copy(bundle, root / BUNDLE[1:])
        # Packages do not start their servers, because there is no systemd.
        (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        shutil.copy(PROJECT / "tests/deploy/systemctl.py", root / "usr/local/bin/systemctl")
        for name in ("usr/sbin/policy-rc.d", "usr/local/bin/systemctl"):
            (root / name).chmod(0o755)
        files = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
            cwd=PROJECT, capture_output=True, check=True,
        )  # fmt: skip
        subprocess.run(
            ["tar", "-czf", root / "root/konstruct.tar.gz", "--files-from=-"],  # noqa: S607
            cwd=PROJECT, input=files.stdout, check=True,
        )  # fmt: skip
        yield Debian(root, ends)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a Debian")
@pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)}")
def test_the_page_ends_in_a_deployment_that_remembers(tmp_path: Path) -> None:
    text = PAGE.read_text()
    steps = [block for block in blocks(PAGE) if block.language == "console" and not block.not_run]
    upgrade = text[: text.index("\n## Upgrade\n")].count("\n")
    (code,) = (block for block in steps if "pip install" in block.text)
    (ask,) = (block for block in steps if "ask()" in block.text)
    with empty_debian(tmp_path) as debian:
        output = "".join(follow(debian, block) for block in steps if block.line < upgrade)
        assert "My sister lives in Porto." in output
        assert re.search(
            r'"content": ?"[^"]*Porto[^"]*"', output.partition('"thread_id":"later"')[2]
        )
        assert 'konstruct_server_up{server="default"} 1.0' in output
        assert_sound(debian)
        processes = running(debian)
        debian.run("VERSION=0.1.1", with_network=False)
        for block in (code, *(block for block in steps if block.line > upgrade), ask):
            follow(debian, block)
        assert_sound(debian)
        assert running(debian).keys() == processes.keys()
        assert not set(running(debian).values()) & set(processes.values())
        folders = debian.run("readlink /proc/[0-9]*/cwd || true", with_network=False)
        assert "/opt/konstruct/0.1.1" in folders
        assert "/opt/konstruct/0.1.0" not in folders


def follow(debian: Debian, block: Block) -> str:
    """Run the commands of a block."""
    return debian.run(block.typed, with_network=bool(FETCHES.search(block.typed)))


def assert_sound(debian: Debian) -> None:
    """Fail if a check of the deployment finds something."""
    command = "konstruct check --deploy --database default --fail-level WARNING"
    assert "System check identified no issues" in debian.run(command, with_network=False)


def running(debian: Debian) -> dict[str, str]:
    """Return the ids of the processes of the units."""
    found = debian.run(
        "cd /run/units; grep --with-filename . konstruct*.service", with_network=False
    )
    return dict(line.split(":", 1) for line in found.split())
