"""A real PgBouncer in front of the tests' Postgres: each transaction may use another session."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
from django.conf import settings

from konstruct.local import services

EXECUTABLE = shutil.which("pgbouncer")
# PgBouncer does not run as root.
SYSTEM_USER = "nobody"

CONFIG = """
[databases]
* = host={host} port={port} {password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
; Each transaction meets another session than the one before it.
min_pool_size = {size}
server_round_robin = 1
max_client_conn = 200
query_wait_timeout = 20
; An answer that never comes is an error, and no end of the tests.
query_timeout = 30
ignore_startup_parameters = extra_float_digits
server_login_retry = 1
logfile = {directory}/pgbouncer.log
log_connections = 0
log_disconnections = 0
"""


@contextmanager
def pooler(*, size: int = 3, mode: str = "transaction", role: str = "app") -> Iterator[str]:
    """Run a pooler for the application's role, or the owner's. Yield a URL without a database."""
    if settings.EMBEDDED_DATABASE:
        url, password = services.database_url(role), services.password_of(role)
    else:
        url = settings.DATABASE_URL if role == "app" else settings.DATABASE_OWNER_URL
        password = unquote(urlsplit(url).password or "")
    target = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="konstruct-pooler-", dir="/tmp") as made:
        directory = Path(made)
        with socket.create_server(("127.0.0.1", 0)) as free:
            listen = free.getsockname()[1]
        config = directory / "pgbouncer.ini"
        config.touch(mode=0o600)
        config.write_text(
            CONFIG.format(
                host=unquote(target.hostname or ""), port=target.port or 5432, listen=listen,
                size=size, mode=mode, directory=directory,
                password=f"user={target.username} password={password}" if password else
                f"user={target.username}",
            )
        )  # fmt: skip
        command = [str(EXECUTABLE), "--quiet", str(config)]
        user = None
        if os.geteuid() == 0:
            user = _user_of(Path(unquote(target.hostname or "/")))
            shutil.chown(directory, user)
            shutil.chown(config, user)
        process = subprocess.Popen(command, user=user)
        try:
            _await(listen, process, directory)
            yield f"postgresql://{target.username}@127.0.0.1:{listen}"
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def other_clients(url: str, statements: Sequence[str], *, number: int = 2) -> Iterator[None]:
    """Run the statements in transactions of other clients of the pooler during the block."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            with (
                contextlib.suppress(psycopg.OperationalError),  # no session was free for long
                psycopg.connect(url, prepare_threshold=None) as client,
            ):
                while not done.wait(0.02):
                    with client.transaction():
                        for statement in statements:
                            client.execute(statement)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _user_of(sockets: Path) -> str:
    """Return the user that may open Postgres' socket, if there is one."""
    return sockets.owner() if sockets.is_dir() else SYSTEM_USER


def _await(port: int, process: "subprocess.Popen[bytes]", directory: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            log = directory / "pgbouncer.log"
            text = log.read_text() if log.exists() else ""
            assert process.poll() is None, f"pgbouncer ended: {text}"
            assert time.monotonic() < deadline, f"pgbouncer does not answer: {text}"
            time.sleep(0.05)
        else:
            return
