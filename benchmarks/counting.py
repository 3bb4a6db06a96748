"""A proxy in front of Postgres that counts what it is asked: each message that wants an answer.

`python benchmarks/counting.py HOST PORT` prints a port on this machine. For each line that comes in
it prints how many messages have come by that port. HOST is a directory with Postgres' socket, or a
name. Connections must not be encrypted.
"""

import contextlib
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator

from delaying import connect

# A simple query, and the end of what is sent together: the client waits for an answer to each.
ASKING = (b"Q", b"S")


@contextlib.contextmanager
def counted(host: str, port: int) -> Iterator[tuple[int, Callable[[], int]]]:
    """Yield the port of such a proxy, and how many messages have come by it."""
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
    """Hand on and count until nobody asks any more."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    counts: Counter[int] = Counter()
    host, port = sys.argv[1], int(sys.argv[2])
    threading.Thread(target=accept, args=(listener, host, port, counts), daemon=True).start()
    for _ in sys.stdin:
        print(counts.total(), flush=True)


def accept(listener: socket.socket, host: str, port: int, counts: Counter[int]) -> None:
    """Connect each client with Postgres."""
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = connect(host, port)
        threading.Thread(target=count_and_hand_on, args=(client, server, counts)).start()
        threading.Thread(target=hand_on, args=(server, client)).start()


def hand_on(source: socket.socket, target: socket.socket) -> None:
    """Hand on as it comes."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def count_and_hand_on(source: socket.socket, target: socket.socket, counts: Counter[int]) -> None:
    """Hand on, and count for this thread alone."""
    unread, typed = b"", 0
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
            unread += data
            # A message is its type, its length and the rest; the first one has no type.
            while len(unread) >= typed + 4:
                length = typed + int.from_bytes(unread[typed : typed + 4], "big")
                if len(unread) < length:
                    break
                if typed and unread[:1] in ASKING:
                    counts[threading.get_ident()] += 1
                unread, typed = unread[length:], 1
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
