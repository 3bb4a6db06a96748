"""The language model of waiting.py: a server on loopback whose delay is stated in the message.

A message that says "takes 7.5 s" is answered in 7.5 seconds: in one piece, or in ten pieces a
second where the request asks for a stream. A request that offers tools is first answered, after a
fifth of the time, by a call that is refused; the rest of the time is that of the second request.
"""

import asyncio
import json
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Any

PIECES_PER_SECOND = 10
FIRST_ROUND = 0.2
_TAKES = re.compile(rb"takes (\d+\.\d+) s")
_STREAM = re.compile(rb'"stream": ?true')
_OFFERS_TOOLS = re.compile(rb'"tools": ?\[')
_HAS_CALLED = re.compile(rb'"role": ?"tool"')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_REFUSED_CALL = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "remember_fact", "arguments": "{}"},
}


@dataclass(frozen=True)
class Model:
    """The server, as other processes use it."""

    url: str
    open: "Synchronized[int]"
    """Requests that are being answered."""
    latest: "Synchronized[float]"
    """Seconds by which the latest answer was late: the server's own lack of processor time."""
    hold: "Synchronized[int]"
    """Requests that have to be open before the time of any of them begins."""


@contextmanager
def serving() -> Iterator[Model]:
    """Run the server in a separate process during the block."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    shared: Any = context.Value("i", 0), context.Value("d", 0.0), context.Value("i", 0)
    process = context.Process(target=_run, args=(there, *shared), daemon=True)
    process.start()
    try:
        yield Model(here.recv(), *shared)
    finally:
        process.kill()
        process.join()


def _run(pipe: Connection, *shared: Any) -> None:
    asyncio.run(_serve(pipe, Model("", *shared)))


async def _serve(pipe: Connection, model: Model) -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Ends: when the client closes the connection.
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                model.open.value += 1
                try:
                    await _answer(model, body, writer)
                finally:
                    model.open.value -= 1
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return

    server = await asyncio.start_server(take, "127.0.0.1", 0, backlog=4096)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    await server.serve_forever()


async def _answer(model: Model, body: bytes, writer: asyncio.StreamWriter) -> None:
    while model.open.value < model.hold.value:
        await asyncio.sleep(0.05)
    model.hold.value = 0
    begun, found = time.monotonic(), _TAKES.findall(body)
    seconds, calls = float(found[-1]) if found else 0.0, False
    if _OFFERS_TOOLS.search(body):
        calls = not _HAS_CALLED.search(body)
        seconds *= FIRST_ROUND if calls else 1 - FIRST_ROUND
    if _STREAM.search(body):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(1, int(seconds * PIECES_PER_SECOND)):
            _write_event(writer, {"delta": {"content": f"piece{number} "}})
            await _until(begun + number / PIECES_PER_SECOND)
        await _until(begun + seconds)
        _write_event(writer, {"delta": {"content": "end"}, "finish_reason": "stop"})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    else:
        await _until(begun + seconds)
        delta = {"content": "", "tool_calls": [_REFUSED_CALL]} if calls else {"content": "Noted."}
        document = json.dumps({"choices": [{"message": {"role": "assistant", **delta}}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(document), document))
    model.latest.value = max(model.latest.value, time.monotonic() - begun - seconds)
    await writer.drain()


def _write_event(writer: asyncio.StreamWriter, choice: dict[str, Any]) -> None:
    event = b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, **choice}]}).encode()
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
