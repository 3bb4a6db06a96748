"""Proxies in front of Postgres: one counts messages, one delays them like a network.

Only messages that wait for an answer are counted. `python proxies.py HOST PORT` prints a local
port. For each input line it prints the number of messages through that port. HOST is a directory
with Postgres' socket, or a name. Connections must not be encrypted.

This module imports nothing of this project, because earlier versions use it too.
"""

import contextlib
import multiprocessing
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

# A simple query, and a Sync message: the client waits for an answer to each.
ASKING = (b"Q", b"S")


@contextlib.contextmanager
def counted(host: str, port: int) -> Iterator[tuple[int, Callable[[], int]]]:
    """Yield the port of a counting proxy, and its number of messages."""
    process = subprocess.Popen(
        [sys.executable, __file__, host, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    asking, answers = process.stdin, process.stdout

    def count() -> int:
        asking.write("\n")
        asking.flush()
        return int(answers.readline())

    try:
        yield int(answers.readline()), count
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Forward and count until the input ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    counts: Counter[int] = Counter()
    host, port = sys.argv[1], int(sys.argv[2])
    threading.Thread(target=accept, args=(listener, host, port, counts), daemon=True).start()
    for _ in sys.stdin:
        print(counts.total(), flush=True)


def accept(listener: socket.socket, host: str, port: int, counts: Counter[int]) -> None:
    """Connect each client to Postgres."""
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = connect(host, port)
        threading.Thread(target=count_and_hand_on, args=(client, server, counts)).start()
        threading.Thread(target=hand_on, args=(server, client)).start()


def hand_on(source: socket.socket, target: socket.socket) -> None:
    """Forward data unchanged."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def count_and_hand_on(source: socket.socket, target: socket.socket, counts: Counter[int]) -> None:
    """Forward and count for this thread only."""
    unread, typed = b"", 0
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
            unread += data
            # A message is its type, its length and the rest. The first one has no type.
            while len(unread) >= typed + 4:
                length = typed + int.from_bytes(unread[typed : typed + 4], "big")
                if len(unread) < length:
                    break
                if typed and unread[:1] in ASKING:
                    counts[threading.get_ident()] += 1
                unread, typed = unread[length:], 1
        target.shutdown(socket.SHUT_WR)


def connect(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(f"{host}/.s.PGSQL.{port}")
    return connected


@contextlib.contextmanager
def delayed(host: str, port: int, seconds: float) -> Iterator[int]:
    """Yield a local port whose proxy delays data by the given seconds in each direction.

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


def _receive(
    source: socket.socket, waiting: "queue.SimpleQueue[tuple[float, bytes]]", seconds: float
) -> None:
    # Data that arrives while other data is delayed has the same delay.
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


if __name__ == "__main__":
    main()
