"""The export of spans by OpenTelemetry's SDK, which is installed with requirements/tracing.txt.

Only `tenants.traces.start` imports this module. Spans wait in a queue of MAX_WAITING and a thread
sends them by OTLP over HTTP. Where the collector hangs or is down, the SDK logs failed exports and
drops the oldest spans; neither a request nor a job waits for it.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tenants.exceptions import code_of

MAX_WAITING: Final = 2048
# Time between two exports; sooner if a quarter of MAX_WAITING waits.
EXPORT_SECONDS: Final = 2.0
# Time for the collector to answer, including retries.
EXPORT_TIMEOUT_SECONDS: Final = 5.0
# Time for waiting spans at the end of the process. A container has ten seconds, jobs need seven.
STOP_SECONDS: Final = 1.5
# Longer headers are no traceparent, which has 55 characters.
MAX_PARENT_CHARACTERS: Final = 128
# Names of routes, kinds, hosts and codes: no spaces, no quotes, no @.
WORD: Final = re.compile(r"[A-Za-z0-9_./:<>()\[\]{}?*+|^$\\-]{0,128}")
NO_WORD: Final = "other"
Value = UUID | str | int | float | bool | None
# Parameters of `tenants.traces.span` and `set_attributes`, with the names that collectors know.
ATTRIBUTES: Final = {
    "tenant_id": "konstruct.tenant.id",
    "agent_id": "konstruct.agent.id",
    "interface": "konstruct.interface",
    "channel": "konstruct.channel",
    "job_kind": "konstruct.job.kind",
    "job_key": "konstruct.job.key",
    "attempt": "konstruct.job.attempt",
    "messages": "konstruct.messages",
    "hits": "konstruct.recall.hits",
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "endpoint": "server.address",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "tool": "gen_ai.tool.name",
}

_W3C: Final = TraceContextTextMapPropagator()


class Tracing:
    """The spans of this process. `tenants.traces` has its functions."""

    def __init__(self, process: str) -> None:
        for name, value in list(os.environ.items()):
            if name.startswith("OTEL_") and not value.strip():
                del os.environ[name]  # as compose files pass it; the SDK would read it
        os.environ.setdefault("OTEL_SERVICE_NAME", "konstruct")
        self._batches = BatchSpanProcessor(
            OTLPSpanExporter(timeout=EXPORT_TIMEOUT_SECONDS),
            max_queue_size=MAX_WAITING,
            schedule_delay_millis=EXPORT_SECONDS * 1000,
            max_export_batch_size=MAX_WAITING // 4,
        )
        provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(float(settings.OTEL_TRACES_SAMPLER_ARG))),
            resource=Resource.create({"konstruct.process": process, "process.pid": os.getpid()}),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self._batches)
        self._tracer = provider.get_tracer("konstruct")

    def stop(self) -> None:
        """Export waiting spans for at most STOP_SECONDS."""
        # The SDK's own shutdown would wait for half a minute.
        end = threading.Thread(target=self._batches.shutdown, name="spans", daemon=True)
        end.start()
        end.join(STOP_SECONDS)

    @contextmanager
    def span(
        self,
        name: str,
        kind: str,
        parent: str | None,
        attributes: Mapping[str, Value],
    ) -> Iterator[None]:
        """See `tenants.traces.span`."""
        with self._tracer.start_as_current_span(
            name,
            context=None if parent is None else _context_of(parent),
            kind=SpanKind[kind],
            attributes=_exported_attributes(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ):
            try:
                yield
            except Exception as error:
                self.record_error(error)
                raise

    def set_attributes(self, name: str | None, attributes: Mapping[str, Value]) -> None:
        """See `tenants.traces.set_attributes`."""
        span = trace.get_current_span()
        if name is not None:
            span.update_name(name)
        span.set_attributes(_exported_attributes(attributes))
        if attributes.get("status") in range(500, 600):
            span.set_status(StatusCode.ERROR)

    def record_error(self, error: Exception) -> None:
        """See `tenants.traces.record_error`."""
        span = trace.get_current_span()
        span.set_attribute("error.type", code_of(error))
        span.set_attribute("exception.type", f"{type(error).__module__}.{type(error).__name__}")
        span.set_status(StatusCode.ERROR)

    def traceparent(self) -> str:
        """See `tenants.traces.traceparent`."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get("traceparent", "")

    def trace_ids(self) -> dict[str, str]:
        """See `tenants.traces.trace_ids`."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
        }


def _context_of(traceparent: str) -> Context:
    """Return the context of a traceparent, an empty one if it is malformed."""
    if len(traceparent) > MAX_PARENT_CHARACTERS:
        return Context()
    return _W3C.extract({"traceparent": traceparent}, context=Context())


def _exported_attributes(attributes: Mapping[str, Value]) -> dict[str, Any]:
    """Return attributes with OpenTelemetry's names. A text that does not match WORD is "other"."""
    named: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, UUID):
            value = str(value)
        elif isinstance(value, str) and not WORD.fullmatch(value):
            value = NO_WORD
        if value is not None:
            named[ATTRIBUTES[name]] = value
    return named
