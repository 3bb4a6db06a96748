"""A proxy in front of Postgres that hands on everything so much later, as a network does."""

import contextlib
import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def delayed(host: str, port: int, seconds: float) -> Iterator[int]:
    """Yield a port on this machine, from which it takes so many seconds each way.

    ``host`` is a name, or a directory with Postgres' socket.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.Process(
        target=_accept, args=(listener, host, port, seconds), daemon=True
    )
    process.start()
    try:
        yield listener.getsockname()[1]
    finally:
        process.terminate()
        process.join()
        listener.close()


def _accept(listener: socket.socket, host: str, port: int, seconds: float) -> None:
    while True:
        client, _ = listener.accept()
        server = connect(host, port)
        for one, other in ((client, server), (server, client)):
            waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            threading.Thread(target=_receive, args=(one, waiting, seconds), daemon=True).start()
            threading.Thread(target=_hand_on, args=(other, waiting), daemon=True).start()


def connect(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(f"{host}/.s.PGSQL.{port}")
    return connected


def _receive(
    source: socket.socket, waiting: "queue.SimpleQueue[tuple[float, bytes]]", seconds: float
) -> None:
    # What comes while something waits waits as long, and not longer.
    while data := source.recv(1 << 16):
        waiting.put((time.perf_counter() + seconds, data))
    waiting.put((0.0, b""))


def _hand_on(target: socket.socket, waiting: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
    with contextlib.suppress(OSError):
        if target.family != socket.AF_UNIX:
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            due, data = waiting.get()
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            time.sleep(max(0.0, due - time.perf_counter()))
            target.sendall(data)
