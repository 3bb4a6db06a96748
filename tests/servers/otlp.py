"""An OpenTelemetry collector on loopback: receives spans by OTLP over HTTP, and stores them."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest import mock

from django.test import override_settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tenants import traces
from tests.servers.loopback import LoopbackServer


class Seen:
    """A received span."""

    def __init__(self, span: Span, process: str) -> None:
        self.name = span.name
        self.kind = Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_")
        self.trace_id = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.attributes = {attribute.key: _value(attribute.value) for attribute in span.attributes}
        self.is_error = span.status.code == Status.STATUS_CODE_ERROR
        self.process = process


class Collector(LoopbackServer):
    """Stores received data, as bytes and as spans."""

    def __init__(self) -> None:
        self.bytes: list[bytes] = []
        self.spans: list[Seen] = []
        self.status = 200
        self.hangs = threading.Event()
        """While it is set, no request is answered."""
        self._released = threading.Event()
        super().__init__()

    def __exit__(self, *error: object) -> None:
        self._released.set()
        super().__exit__(*error)

    def trace(self, trace_id: str) -> list[Seen]:
        """Return the received spans of a trace."""
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

    def answer_post(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if self.hangs.is_set():
            self._released.wait(120)
            handler.close_connection = True
            return
        if self.status == 200:
            assert handler.path == "/v1/traces"
            self.bytes.append(body)
            self.spans += _spans_of(body)
        handler.send_response(self.status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@contextmanager
def exporting(ratio: str = "1") -> Iterator[Collector]:
    """Export spans of this process to a collector. Settings are empty as in compose."""
    with Collector() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        }
        with (
            mock.patch.dict(os.environ, environment),
            override_settings(
                OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_TRACES_SAMPLER_ARG=ratio
            ),
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
        named = {
            attribute.key: _value(attribute.value) for attribute in resource.resource.attributes
        }
        for scope in resource.scope_spans:
            found += [Seen(span, named["konstruct.process"]) for span in scope.spans]
    return found


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
