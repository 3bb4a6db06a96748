"""Traces: spans of requests, jobs, recalls, tools and requests to language models.

Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set and the process has called `start`. While it is off,
OpenTelemetry is not imported, and a span costs a function call.

A span has ids, numbers and fixed words, never content: no text of a message or a prompt, no name,
address or id of a person, no argument of a tool, no query and no header. An error is recorded by
its class and code. `tenants.trace_export.ATTRIBUTES` has all attributes.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

if TYPE_CHECKING:
    from tenants.trace_export import Tracing, Value

# Kinds of spans, as OpenTelemetry calls them.
SERVER: Final = "SERVER"
CLIENT: Final = "CLIENT"
CONSUMER: Final = "CONSUMER"
INTERNAL: Final = "INTERNAL"

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_tracing: "Tracing | None" = None


def start(process: str) -> None:
    """Export spans of this process, if OTEL_EXPORTER_OTLP_ENDPOINT is set. Call it after a fork.

    Args:
        process: the kind of process, such as "web".
    """
    global _tracing
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT and _tracing is None:
        from tenants.trace_export import Tracing  # imports OpenTelemetry

        _tracing = Tracing(process)


def stop() -> None:
    """Export waiting spans for at most STOP_SECONDS, at the end of the process."""
    global _tracing
    if _tracing is not None:
        _tracing.stop()
        _tracing = None


@contextmanager
def span(
    name: str, kind: str = INTERNAL, *, parent: str | None = None, **attributes: "Value"
) -> Iterator[None]:
    """Trace the block, or each call of the decorated function.

    An exception that leaves it is recorded by its class and code.

    Args:
        name: of the span; a word of ours.
        kind: SERVER, CLIENT, CONSUMER or INTERNAL.
        parent: a traceparent. Empty or malformed: the span begins a trace. None: the parent is the
            current span, if there is one.
        attributes: see `tenants.trace_export.ATTRIBUTES`.
    """
    with nullcontext() if _tracing is None else _tracing.span(name, kind, parent, attributes):
        yield


def request_span(scope: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Trace an ASGI request, in the trace of its header traceparent if there is one.

    The header tracestate is ignored: clients can write any text into it.
    """
    given = [value for name, value in scope["headers"] if name == b"traceparent"]
    parent = given[0].decode("latin-1") if len(given) == 1 else ""
    method = method_of(scope)
    return span(method, SERVER, parent=parent, method=method)


def method_of(scope: Mapping[str, Any]) -> str:
    """Return the method of an ASGI request; _OTHER for one that HTTP does not know."""
    method: str = scope["method"]
    return method if method in METHODS else "_OTHER"


@contextmanager
def batch_span(name: str, parents: Collection[str], **attributes: "Value") -> Iterator[None]:
    """Trace work for several jobs: a span in the trace of each, or in the current trace."""
    with ExitStack() as stack:
        for parent in [None] if trace_ids() else sorted(set(parents) - {""}):
            stack.enter_context(span(name, INTERNAL, parent=parent, **attributes))
        yield


def set_attributes(*, name: str | None = None, **attributes: "Value") -> None:
    """Add to the current span.

    Args:
        name: its new name.
        attributes: see `tenants.trace_export.ATTRIBUTES`.
    """
    if _tracing is not None:
        _tracing.set_attributes(name, attributes)


def record_error(error: Exception) -> None:
    """Mark the current span as failed, by the error's class and code."""
    if _tracing is not None:
        _tracing.record_error(error)


def traceparent() -> str:
    """Return the current span as a W3C traceparent, to continue it elsewhere; "" without a span."""
    return "" if _tracing is None else _tracing.traceparent()


def trace_ids() -> dict[str, str]:
    """Return `trace_id` and `span_id` of the current span, for log lines; empty without a span."""
    return {} if _tracing is None else _tracing.trace_ids()
