"""A collector of OpenTelemetry on loopback: takes spans by OTLP over HTTP, and keeps them."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from unittest import mock

from django.test import override_settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tenants import traces


class Seen:
    """A span as it was received, by names of ours."""

    def __init__(self, span: Span, process: str) -> None:
        self.name = span.name
        self.kind = Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_")
        self.trace_id = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.attributes = {each.key: _value(each.value) for each in span.attributes}
        self.is_error = span.status.code == Status.STATUS_CODE_ERROR
        self.process = process


class Collector:
    """Keeps what it gets, as bytes and as spans."""

    def __init__(self) -> None:
        self.bytes: list[bytes] = []
        self.spans: list[Seen] = []
        self.status = 200
        self.hangs = threading.Event()
        """While it is set, no request is answered."""
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def trace(self, trace_id: str) -> list[Seen]:
        """Return the spans of a trace that have come."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def wait_for(
        self, trace_id: str, condition: Callable[[list[Seen]], object], seconds: float = 60
    ) -> list[Seen]:
        """Return the spans of a trace when they fulfil the condition; fail if they do not."""
        deadline = time.monotonic() + seconds
        while not condition(self.trace(trace_id)):
            names = [span.name for span in self.trace(trace_id)]
            assert time.monotonic() < deadline, f"of {trace_id} came {names}"
            time.sleep(0.05)
        return self.trace(trace_id)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.hangs.is_set():
                    collector._released.wait(120)
                    self.close_connection = True
                    return
                if collector.status == 200:
                    assert self.path == "/v1/traces"
                    collector.bytes.append(body)
                    collector.spans += _spans_of(body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

        return Handler


@contextmanager
def exporting() -> Iterator[Collector]:
    """Let this process export its spans to a collector."""
    with Collector() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_TRACES_SAMPLER": "",  # as compose passes it
        }
        with (
            mock.patch.dict(os.environ, environment),
            override_settings(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url),
        ):
            traces.start("tests")
            try:
                yield collector
            finally:
                traces.stop()


def _spans_of(body: bytes) -> list[Seen]:
    request = ExportTraceServiceRequest.FromString(body)
    found = []
    for resource in request.resource_spans:
        named = {each.key: _value(each.value) for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            found += [Seen(span, named["konstruct.process"]) for span in scope.spans]
    return found


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
