"""A separate Valkey for a test, with its own options."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as NotYet

from konstruct.local.services import server
from tests.konstruct.running import eventually


def free_port() -> int:
    """Return a free port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def own_valkey(
    folder: Path, *options: str, port: int = 0
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a Valkey with these options. Yield its process and its URL."""
    port = port or free_port()
    command = [server(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(port))
        yield process, f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with closing(Redis(port=port)) as client:
        try:
            return bool(client.ping())
        except NotYet:
            return False
