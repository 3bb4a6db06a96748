"""Traces, and the ids in each log line: of the request, the tenant, the API key, task and span.

Traces are spans of requests, jobs, recalls, tools and requests to language models.

Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set and the process has called `start`. While it is off,
OpenTelemetry is not imported, and a span costs a function call. Its SDK is installed with
requirements/tracing.txt.

A span has ids, numbers and fixed words, never content: no text of a message or a prompt, no name,
address or id of a person, no argument of a tool, no query and no header. An error is recorded by
its class and code.

Spans wait in a queue of MAX_WAITING and a thread sends them by OTLP over HTTP. Where the collector
hangs or is down, the SDK logs failed exports and drops the oldest spans; neither a request nor a
job waits for it.
"""

import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest
from structlog.contextvars import bind_contextvars, get_contextvars

from tenants.exceptions import code_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

# Kinds of spans, as OpenTelemetry calls them.
SERVER: Final = "SERVER"
CLIENT: Final = "CLIENT"
CONSUMER: Final = "CONSUMER"
INTERNAL: Final = "INTERNAL"

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

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
# Parameters of `span` and `set_attributes`, with the names that collectors know.
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

# The spans that wait for their export; None while tracing is off.
_batches: "BatchSpanProcessor | None" = None
_tracer: Any = None


def start(process: str) -> None:
    """Export spans of this process, if OTEL_EXPORTER_OTLP_ENDPOINT is set. Call it after a fork.

    Args:
        process: the kind of process, such as "web".
    """
    global _batches, _tracer
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT or _batches is not None:
        return
    for name, value in list(os.environ.items()):
        if name.startswith("OTEL_") and not value.strip():
            del os.environ[name]  # as compose files pass it; the SDK would read it
    os.environ.setdefault("OTEL_SERVICE_NAME", "konstruct")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    _batches = BatchSpanProcessor(
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
    provider.add_span_processor(_batches)
    _tracer = provider.get_tracer("konstruct")


def stop() -> None:
    """Export waiting spans for at most STOP_SECONDS, at the end of the process."""
    global _batches
    if _batches is not None:
        # The SDK's own shutdown would wait for half a minute.
        end = threading.Thread(target=_batches.shutdown, name="spans", daemon=True)
        _batches = None
        end.start()
        end.join(STOP_SECONDS)


@contextmanager
def span(
    name: str, kind: str = INTERNAL, *, parent: str | None = None, **attributes: Value
) -> Iterator[None]:
    """Trace the block, or each call of the decorated function.

    An exception that leaves it is recorded by its class and code.

    Args:
        name: of the span; a word of ours.
        kind: SERVER, CLIENT, CONSUMER or INTERNAL.
        parent: a traceparent. Empty or malformed: the span begins a trace. None: the parent is the
            current span, if there is one.
        attributes: see ATTRIBUTES.
    """
    if _batches is None:
        yield
        return
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = None
    if parent is not None:
        carrier = {"traceparent": parent} if len(parent) <= MAX_PARENT_CHARACTERS else {}
        context = TraceContextTextMapPropagator().extract(carrier, context=Context())
    with _tracer.start_as_current_span(
        name,
        context=context,
        kind=SpanKind[kind],
        attributes=_exported_attributes(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ):
        try:
            yield
        except Exception as error:
            record_error(error)
            raise


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
def batch_span(name: str, parents: Collection[str], **attributes: Value) -> Iterator[None]:
    """Trace work for several jobs: a span in the trace of each, or in the current trace."""
    with ExitStack() as stack:
        for parent in [None] if trace_ids() else sorted(set(parents) - {""}):
            stack.enter_context(span(name, INTERNAL, parent=parent, **attributes))
        yield


def set_attributes(*, name: str | None = None, **attributes: Value) -> None:
    """Add to the current span.

    Args:
        name: its new name.
        attributes: see ATTRIBUTES.
    """
    if _batches is None:
        return
    from opentelemetry.trace import StatusCode, get_current_span

    current = get_current_span()
    if name is not None:
        current.update_name(name)
    current.set_attributes(_exported_attributes(attributes))
    if attributes.get("status") in range(500, 600):
        current.set_status(StatusCode.ERROR)


def record_error(error: Exception) -> None:
    """Mark the current span as failed, by the error's class and code."""
    if _batches is None:
        return
    from opentelemetry.trace import StatusCode, get_current_span

    current, kind = get_current_span(), type(error)
    current.set_attribute("error.type", code_of(error))
    current.set_attribute("exception.type", f"{kind.__module__}.{kind.__name__}")
    current.set_status(StatusCode.ERROR)


def traceparent() -> str:
    """Return the current span as a W3C traceparent, to continue it elsewhere; "" without a span."""
    if not (ids := trace_ids()):
        return ""
    from opentelemetry.trace import get_current_span

    flags = get_current_span().get_span_context().trace_flags
    return f"00-{ids['trace_id']}-{ids['span_id']}-{flags:02x}"


def trace_ids() -> dict[str, str]:
    """Return `trace_id` and `span_id` of the current span, for log lines; empty without a span."""
    if _batches is None:
        return {}
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }


# --- Ids in log lines ----------------------------------------------------------------------------

# A request and a task bind their ids in structlog's context variables. The tenant is the one that
# the thread has entered (`tenants.context`), otherwise that of the request: lines that are logged
# after a request has left its tenant have it too.
LOGGED_IDS: Final = (
    *("request_id", "tenant_id", "key_id", "task_name", "task_id"),
    *("trace_id", "span_id"),
)
# The key in an ASGI scope under which threads leave ids for the event loop.
_IN_SCOPE: Final = "konstruct.log_ids"
# The key in an ASGI scope with the path of the access line.
PATH_IN_SCOPE: Final = "konstruct.path"
_ARGUMENT: Final = re.compile(r"<(?:\w+:)?(\w+)>")


def logged_path(request: HttpRequest) -> str:
    """Return the path of a request for a log line: its route, with the ids of rows.

    Other arguments, such as the id of a user, keep their names: `/api/v1/users/<user_id>/`. A path
    without a route can have any text, and is "-".
    """
    match = request.resolver_match
    if match is None:
        return "-"

    def written(found: re.Match[str]) -> str:
        value = match.kwargs.get(found[1])
        return str(value) if isinstance(value, UUID | int) else f"<{found[1]}>"

    return "/" + _ARGUMENT.sub(written, match.route)


def bind_request_ids(request: HttpRequest, **ids: object) -> None:
    """Add ids to all further log lines of a request, including its access line.

    Args:
        request: the request; an ASGI request keeps the ids for the event loop too.
        ids: values of LOGGED_IDS. Pass verified ids only, and no tenant or key that a client only
            claims.
    """
    texts = {name: str(value) for name, value in ids.items()}
    bind_contextvars(**texts)
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault(_IN_SCOPE, {}).update(texts)


def bind_ids_of_scope(scope: MutableMapping[str, Any]) -> None:
    """Add the ids that threads have bound for a request to the log lines of its event loop task."""
    bind_contextvars(**scope.get(_IN_SCOPE, {}))


def log_ids() -> dict[str, str]:
    """Return the ids of a log line of this thread, in the order of LOGGED_IDS."""
    ids = {**get_contextvars(), **trace_ids()}
    # Do not create a connection object in an event loop, or before Django is set up.
    for wrapper in connections.all(initialized_only=True):
        if wrapper.alias == DEFAULT_DB_ALIAS and (tenant_id := getattr(wrapper, "tenant_id", None)):
            ids["tenant_id"] = str(tenant_id)
    return {name: ids[name] for name in LOGGED_IDS if name in ids}
