"""The production server on the tests' database: gunicorn as deployed, as konstruct_app."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from konstruct.heartbeats import WORKERS
from konstruct.processes import bound_to_this_process
from tests.konstruct.running import PROJECT, eventually

WEB = ["gunicorn", "--config", "deploy/gunicorn.conf.py", "--workers", "1"]
WORKER = ["django", "worker", *WORKERS]


@contextlib.contextmanager
def serving(environment: Mapping[str, str], log: Path, *, worker: bool = False) -> Iterator[str]:
    """Serve during the block, with a worker if requested. Yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://localhost:{port}"
    variables = {**environment, "KONSTRUCT_HOST": "127.0.0.1", "PORT": str(port)}
    with contextlib.ExitStack() as opened:
        for command in [WEB, WORKER] if worker else [WEB]:
            opened.enter_context(running(command, variables, log))
        eventually(lambda: answers(f"{url}/health/ready"))
        yield url


@contextlib.contextmanager
def running(
    command: list[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process during the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=PROJECT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=bound_to_this_process(signal.SIGTERM),
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, timeout=5).is_success
    return False
