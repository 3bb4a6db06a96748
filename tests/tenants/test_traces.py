"""Spans of one process: off, on, too many, and with a failing collector."""

import os
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from tenants import trace_export, traces
from tenants.exceptions import InvalidTenantId
from tests.servers.otlp import Collector, exporting

PROJECT = Path(__file__).resolve().parents[2]
TRACE = "a" * 32
PARENT = f"00-{TRACE}-{'b' * 16}-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """This process exports its spans to the collector."""
    with exporting() as running:
        yield running


def counted(outcome: str) -> float:
    return float(traces.SPANS.of(outcome=outcome)._value.get())


def test_a_span_that_is_off_costs_less_than_five_times_an_empty_context() -> None:
    def empty() -> None:
        with nullcontext():
            pass

    def off() -> None:
        with traces.span("a", traces.CLIENT, attempt=1):
            pass

    assert traces.traceparent() == ""
    assert traces.trace_ids() == {}
    of_empty, of_off = (
        min(timeit.repeat(function, number=20_000, repeat=7)) for function in (empty, off)
    )
    assert of_off / of_empty < 5


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["", "sys.modules['opentelemetry'] = None;"])
def test_without_an_endpoint_neither_sdk_nor_exporter_is_imported(hidden: str) -> None:
    """redis imports the part for metrics if it is installed."""
    code = (
        f"import sys; {hidden} import django; django.setup(); from tenants import traces;"
        "traces.start('web'); import konstruct.asgi, konstruct.worker\n"
        "with traces.span('a'): pass\n"
        "print([name for name in ('tenants.trace_export', 'opentelemetry.sdk.trace.export',"
        " 'opentelemetry.exporter') if name in sys.modules])"
    )
    assert run(code, OTEL_EXPORTER_OTLP_ENDPOINT="") == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "is not like http://collector:4318"),
        ({"OTEL_TRACES_SAMPLER_ARG": "5 %"}, "is not between 0 and 1"),
    ],
)
def test_a_setting_that_the_sdk_would_ignore_stops_the_process(
    environment: dict[str, str], error: str
) -> None:
    values = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **environment}
    assert error in run("import konstruct.settings", **values)


@pytest.mark.slow
def test_an_endpoint_without_the_packages_names_the_remedy() -> None:
    hidden = "import sys; sys.modules['opentelemetry'] = None; import konstruct.settings"
    output = run(hidden, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert output == (
        "konstruct: OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed:"
        " unset it, or pip install -r requirements/tracing.txt.\n"
    )


def run(code: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def test_a_span_continues_a_trace_and_an_error_is_its_class_and_code(collector: Collector) -> None:
    key = uuid4()
    with (
        suppress(InvalidTenantId),
        traces.span("job", traces.CONSUMER, parent=PARENT, link=PARENT, job_key=key, attempt=2),
    ):
        assert traces.trace_ids()["trace_id"] == TRACE
        assert traces.traceparent().startswith(f"00-{TRACE}-")
        assert traces.is_recording()
        raise InvalidTenantId("what maria said")
    traces.stop()
    (span,) = collector.trace(TRACE)
    assert (span.name, span.kind, span.process) == ("job", "CONSUMER", "tests")
    assert (span.parent, span.links) == ("b" * 16, [(TRACE, "b" * 16)])
    assert span.is_error
    assert span.attributes == {
        "konstruct.job.key": str(key),
        "konstruct.job.attempt": 2,
        "error.type": InvalidTenantId.code,
        "exception.type": "tenants.exceptions.InvalidTenantId",
    }
    assert b"maria" not in b"".join(collector.bytes)


@pytest.mark.parametrize("text", ["two words", "maria@example.com", "é", "a\nb", "x" * 129, "'"])
def test_unknown_attribute_text_is_not_exported(collector: Collector, text: str) -> None:
    with traces.span("tool", parent=PARENT, tool=text):
        traces.set_attributes(channel=text)
    traces.stop()
    (span,) = collector.trace(TRACE)
    assert span.attributes == {"gen_ai.tool.name": "other", "konstruct.channel": "other"}


@pytest.mark.parametrize("parent", ["", "x", "x" * 10_000, PARENT + "-more", PARENT.upper()])
def test_a_malformed_parent_begins_a_trace(collector: Collector, parent: str) -> None:
    with traces.span("outer"), traces.span("job", parent=parent):
        pass
    traces.stop()
    job, outer = collector.spans
    assert job.parent == outer.parent == ""
    assert len({job.trace_id, outer.trace_id, TRACE}) == 3


def test_ratio_samples_complete_traces_and_jobs_follow_their_request() -> None:
    with exporting("0.5") as collector:
        sampled, others = set[str](), set[str]()
        for _ in range(64):
            if sampled and others:
                break
            with traces.span("request", traces.SERVER, parent=""):
                stored, trace_id = traces.traceparent(), traces.trace_ids()["trace_id"]
                (sampled if traces.is_recording() else others).add(trace_id)
            traces.stop()
            traces.start("worker")  # decides by the row of the job only
            with traces.span("job", traces.CONSUMER, parent=stored), traces.span("model"):
                assert traces.trace_ids()["trace_id"] == trace_id
                assert traces.is_recording() == (trace_id in sampled)
            with traces.batch_span("embed", [stored]):
                pass
        traces.stop()
    assert sampled
    assert others
    assert {span.trace_id for span in collector.spans} == sampled
    for trace_id in sampled:
        names = {span.name for span in collector.trace(trace_id)}
        assert names == {"request", "job", "model", "embed"}


@pytest.mark.parametrize(
    ("ratio", "flags", "is_sampled"),
    [("0", "01", True), ("1", "00", False), ("0", "", False)],
)
def test_a_client_decides(ratio: str, flags: str, *, is_sampled: bool) -> None:
    parent = f"{PARENT[:-2]}{flags}" if flags else ""
    with exporting(ratio) as collector:
        with traces.span("request", traces.SERVER, parent=parent):
            stored = traces.traceparent()
        with traces.span("job", traces.CONSUMER, parent=stored):
            assert traces.is_recording() == is_sampled
        traces.stop()
    assert {span.name for span in collector.spans} == ({"request", "job"} if is_sampled else set())


def test_a_command_exports_its_spans_before_it_ends() -> None:
    with exporting() as collector:
        traces.stop()
        with suppress(InvalidTenantId), traces.command_span("backup"):
            with traces.span("backup tenant"):
                pass
            raise InvalidTenantId("what maria said")
        assert traces.traceparent() == ""
        tenant, command = collector.spans
        assert (tenant.name, tenant.parent) == ("backup tenant", command.id)
        assert (command.name, command.parent, command.is_error) == ("command backup", "", True)
        assert command.process == "command backup"
        traces.start("tests")
        with traces.command_span("backup"):
            pass
        assert traces.traceparent() == ""
        with traces.span("after"):
            assert traces.is_recording()  # the process continues to trace


def test_a_batch_is_a_span_in_each_trace_of_its_jobs(collector: Collector) -> None:
    other = f"00-{'d' * 32}-{'e' * 16}-01"
    with traces.batch_span("embed", [PARENT, other, PARENT, ""], messages=4):
        pass
    with traces.batch_span("embed", [""]):
        pass
    with traces.span("job"), traces.batch_span("embed", [PARENT]):
        pass
    traces.stop()
    first, second, inner, job = sorted(collector.spans, key=lambda span: span.name == "job")[:4]
    assert {first.trace_id, second.trace_id} == {TRACE, "d" * 32}
    assert inner.parent == job.id


def test_spans_that_are_too_many_are_dropped_and_counted(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_export, "MAX_WAITING", 10)
    collector.hangs.set()
    before = counted("dropped")
    for _ in range(25):
        with traces.span("a"):
            pass
    assert counted("dropped") - before == 15
    started = time.monotonic()
    traces.stop()
    assert time.monotonic() - started < 2 * trace_export.STOP_SECONDS
    assert counted("dropped") - before == 25
    assert collector.spans == []


def test_spans_that_the_collector_refuses_are_counted_and_logged_once(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 403
    before = counted("failed")
    for _ in range(3):
        with traces.span("a"):
            pass
    traces.stop()
    assert counted("failed") - before == 3
    lines = [record.getMessage() for record in caplog.records if "Spans" in record.getMessage()]
    assert lines == [
        "Spans are lost: the collector at OTEL_EXPORTER_OTLP_ENDPOINT does not take them"
    ]


class Held:
    """An exporter whose answer arrives when `answers` is set."""

    def __init__(self) -> None:
        self.answers = threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        assert self.answers.wait(60)
        return SpanExportResult.FAILURE


def test_an_export_that_fails_after_the_stop_is_neither_counted_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its spans count as dropped, and the log stream may be closed by then."""
    held, waiting = Held(), trace_export.WaitingSpans()
    waiting.number = 1
    exporter = trace_export.CountingExporter(cast(Any, held), waiting, traces.SPANS)
    before = counted("failed")
    thread = threading.Thread(target=exporter.export, args=([None],))
    thread.start()
    exporter.stop()
    held.answers.set()
    thread.join()
    assert (counted("failed") - before, waiting.number, caplog.records) == (0, 1, [])
