"""Measure many streams at once on one web process: token delay, and other requests.

    python -m benchmarks.serving.streams_at_once [--streams 200] [--tokens 10]

One web process runs as deployed. Another process replaces the workers and their language models:
when all completions are accepted, it publishes a token of each every half second, which contains
the time. It also streams the same tokens directly to as many clients of the same kind: `direct`.
Meanwhile `/health/live` and the list of models are requested, each on its own connection.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from benchmarks.serving.rest import LIMITS
from benchmarks.tools.throwaway import set_up, throwaway_tenant

PAUSE_SECONDS = 0.5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=10)
    options = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id, TemporaryDirectory() as folder:
        measure(tenant_id, Path(folder) / "log", options.streams, options.tokens)


def measure(tenant_id: UUID, log: Path, streams: int, tokens: int) -> None:
    """Read direct streams, then streams of the product."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from tests.konstruct.api.live import serving

    create_agent(tenant_id=tenant_id, name="ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_id, name="benchmark")
    there, here = multiprocessing.get_context("spawn").Pipe()
    stand_in = multiprocessing.get_context("spawn").Process(
        target=run_model, args=(here, tenant_id, streams, tokens), daemon=True
    )
    stand_in.start()
    with serving({**os.environ, **LIMITS}, log) as web:
        beside = {"before": list(answers(web, str(key), seconds=5))}
        for name, url in (("direct", there.recv()), ("ours", web)):
            watch = Beside(web, str(key), streams)
            lags = asyncio.run(read_all(url, str(key), streams, watch))
            beside[f"beside {streams} {name}"] = watch.end()
            show(f"{name}, first token", [times[0] for times in lags])
            show(f"{name}, other tokens", [lag for times in lags for lag in times[1:]])
    for when, found in beside.items():
        for path in PATHS:
            show(f"{path} {when}", [seconds for path_asked, seconds in found if path_asked == path])
    stand_in.join(30)


PATHS = ("/health/live", "/v1/models")


class Beside:
    """Sends other requests while all streams are open."""

    def __init__(self, url: str, key: str, streams: int) -> None:
        self._missing = streams
        self._over = threading.Event()
        self._found: list[tuple[str, float]] = []
        self._thread = threading.Thread(
            target=lambda: self._found.extend(answers(url, key, until=self._over))
        )

    def opened(self) -> None:
        """Count one more open stream."""
        self._missing -= 1
        if not self._missing:
            self._thread.start()

    def end(self) -> list[tuple[str, float]]:
        """Return the requests, and the duration of each answer."""
        self._over.set()
        self._thread.join()
        return self._found


def show(name: str, seconds: Sequence[float]) -> None:
    """Print the median, high percentiles and the maximum in milliseconds."""
    p50, p95 = statistics.median(seconds) * 1000, statistics.quantiles(seconds, n=20)[-1] * 1000
    slowest = max(seconds) * 1000
    print(f"{name:32} n {len(seconds):5}  p50 {p50:6.1f}  p95 {p95:6.1f}  max {slowest:6.1f} ms")


def answers(
    url: str, key: str, *, seconds: float = 120.0, until: threading.Event | None = None
) -> Iterator[tuple[str, float]]:
    """Send requests in turn, ten times a second. Yield the seconds of each answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (until is not None and until.is_set()):
        for path in PATHS:
            begun = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=30)
            headers = {"Host": "localhost", "Authorization": f"Bearer {key}"}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            assert (response.status, response.read()[:1]) == (200, b"{")
            connection.close()
            yield path, time.monotonic() - begun
        time.sleep(0.2)


async def read_all(url: str, key: str, streams: int, beside: Beside) -> list[list[float]]:
    """Read the given number of streams. Return the delay of each token in seconds."""
    return await asyncio.gather(*(read(url, key, number, beside) for number in range(streams)))


async def read(url: str, key: str, number: int, beside: Beside) -> list[float]:
    """Read one stream."""
    parts = urlsplit(url)
    messages = [{"role": "user", "content": f"Message {number}"}]
    user = f"user-{number}"
    body = json.dumps({"model": "ada", "user": user, "messages": messages, "stream": True}).encode()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    lags: list[float] = []
    await reader.readuntil(b"\r\n\r\n")
    beside.opened()
    async for written in tokens_of(reader):
        lags.append(time.monotonic() - written)
    writer.close()
    return lags


async def tokens_of(reader: asyncio.StreamReader) -> AsyncIterator[float]:
    """Yield when each token was written. CLOCK_MONOTONIC is the same for all processes."""
    while (line := await reader.readline()) and line != b"data: [DONE]\n":
        if line.startswith(b"data: {"):
            document = json.loads(line.removeprefix(b"data: "))
            assert "error" not in document, document
            for token in (document["choices"][0]["delta"].get("content") or "").split():
                yield float(token)


# --- In the process that replaces workers and language models --------------------------------


def run_model(pipe: Any, tenant_id: UUID, streams: int, tokens: int) -> None:
    """Stream to direct clients, then publish the tokens of the product's streams."""
    set_up()
    asyncio.run(serve_directly(pipe, streams, tokens))
    publish_replies(tenant_id, streams, tokens)


async def serve_directly(pipe: Any, streams: int, tokens: int) -> None:
    """Answer the given number of requests, all together when all have arrived."""
    writers: list[asyncio.StreamWriter] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writers.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0, backlog=streams)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    while len(writers) < streams:
        await asyncio.sleep(0.05)
    for _ in range(tokens):
        await asyncio.sleep(PAUSE_SECONDS)
        for writer in writers:
            choice = {"delta": {"content": f"{time.monotonic():.6f} "}}
            writer.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
    for writer in writers:
        writer.write(b"data: [DONE]\n")
        await writer.drain()
        writer.close()


def publish_replies(tenant_id: UUID, streams: int, tokens: int) -> None:
    """Publish the replies to the given number of messages as workers do, and record them."""
    from konstruct.orchestrator import replies
    from konstruct.orchestrator.replies import stream_reply
    from memory.conversations.transcript import record_message
    from memory.models import Message
    from tenants.context import tenant_scope

    with tenant_scope(tenant_id), contextlib.ExitStack() as opened:
        while Message.objects.count() < streams:
            time.sleep(0.05)
        time.sleep(1)  # the last of them are watched by now
        messages = list(Message.objects.all())
        publishers = [
            opened.enter_context(stream_reply(tenant_id, message.id, 1)) for message in messages
        ]
        texts = [""] * streams
        for _ in range(tokens):
            time.sleep(PAUSE_SECONDS)
            for number, publish in enumerate(publishers):
                assert publish is not None, "the stream has no reader"
                token = f"{time.monotonic():.6f} "
                texts[number] += token
                publish(token)
        opened.close()
        for message, text in zip(messages, texts, strict=True):
            record_message(
                tenant_id=tenant_id, agent_id=message.agent_id, user_id=message.user_id,
                thread_id=message.thread_id, channel=message.channel, role="assistant",
                content=text, in_reply_to=message.id,
            )  # fmt: skip
            replies.REPLIES.finish(message.id)
            replies.announce(tenant_id, message.id)


if __name__ == "__main__":
    main()
