"""Measure the delay of a token between the language model and the client of a stream.

    python -m benchmarks.serving.streaming [--streams 20] [--tokens 20]

A web process and a worker run as deployed. The language model is a server on loopback that writes a
token every 100 ms and records the time. The same client reads streams of that server directly, and
completions of the product, in turn. The difference is the delay of the product.
"""

import argparse
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import httpx

from benchmarks.tools.throwaway import set_up, throwaway_tenant

TOKEN_SECONDS = 0.1


class Model(BaseHTTPRequestHandler):
    """Streams a configured number of tokens. Each contains the time at which it was written."""

    tokens = 20
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Write an answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(self.tokens):
            time.sleep(TOKEN_SECONDS)
            self._write({"delta": {"content": f"{time.monotonic():.6f} "}})
        self._write({"delta": {"content": "."}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _write(self, choice: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *arguments: object) -> None:
        """Write no log."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=20)
    options = parser.parse_args()
    Model.tokens = options.tokens
    set_up()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = f"http://127.0.0.1:{server.server_port}/v1"
    with throwaway_tenant() as tenant_id, TemporaryDirectory() as folder:
        measure(tenant_id, model, Path(folder) / "log", options.streams)


def measure(tenant_id: UUID, model: str, log: Path, streams: int) -> None:
    """Read streams of both in turn."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from tests.konstruct.api.live import serving

    create_agent(tenant_id=tenant_id, name="ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_id, name="benchmark")
    first: dict[str, list[float]] = {"direct": [], "ours": []}
    others: dict[str, list[float]] = {"direct": [], "ours": []}
    with serving({**os.environ, "LLM_POOL_URL": model}, log, worker=True) as web:
        for number in range(streams + 2):
            for name, url in (("direct", model), ("ours", f"{web}/v1")):
                lags = list(lags_of(url, str(key), number))
                if number >= 2:  # the first ones load the embedding model
                    first[name].append(lags[0])
                    others[name] += lags[1:]
    for kind, lags_by_name in (("first token", first), ("other tokens", others)):
        for name, found in lags_by_name.items():
            p50, p95 = statistics.median(found), statistics.quantiles(found, n=20)[-1]
            print(f"{kind:12} {name:7} p50 {p50 * 1000:6.1f} ms  p95 {p95 * 1000:6.1f} ms")


def lags_of(url: str, key: str, number: int) -> Iterator[float]:
    """Yield for each token the seconds between writing and receiving."""
    messages = [{"role": "user", "content": f"Message {number}"}]
    body = {"model": "ada", "user": "maria", "messages": messages, "stream": True}
    headers = {"Authorization": f"Bearer {key}"}
    path = f"{url}/chat/completions"
    with httpx.stream("POST", path, json=body, headers=headers, timeout=60) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            document = json.loads(line.removeprefix("data: "))
            text = document["choices"][0]["delta"].get("content") or ""
            for written in text.removesuffix(".").split():
                yield time.monotonic() - float(written)


if __name__ == "__main__":
    main()
