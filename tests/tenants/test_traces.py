"""Spans of one process: off, on, too many, and with a failing collector."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from tenants import traces
from tenants.exceptions import InvalidTenantId
from tests.konstruct.running import run_python
from tests.servers.otlp import Collector, exporting

PROJECT = Path(__file__).resolve().parents[2]
TRACE = "a" * 32
PARENT = f"00-{TRACE}-{'b' * 16}-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """This process exports its spans to the collector."""
    with exporting() as running:
        yield running


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


def run(code: str, **environment: str) -> str:
    ran = run_python(
        "-c",
        code,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings", **environment},
    )
    return ran.stdout + ran.stderr


def test_a_span_continues_a_trace_and_an_error_is_its_class_and_code(collector: Collector) -> None:
    key = uuid4()
    with (
        suppress(InvalidTenantId),
        traces.span("job", traces.CONSUMER, parent=PARENT, job_key=key, attempt=2),
    ):
        assert traces.trace_ids()["trace_id"] == TRACE
        assert traces.traceparent().startswith(f"00-{TRACE}-")
        raise InvalidTenantId("what maria said")
    traces.stop()
    (span,) = collector.trace(TRACE)
    assert (span.name, span.kind, span.process) == ("job", "CONSUMER", "tests")
    assert span.parent == "b" * 16
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
            assert traces.traceparent().endswith("-01") == is_sampled
        traces.stop()
    assert {span.name for span in collector.spans} == ({"request", "job"} if is_sampled else set())


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


@pytest.mark.slow
def test_the_end_of_a_process_does_not_wait_for_a_collector_that_hangs(
    collector: Collector,
) -> None:
    collector.hangs.set()
    with traces.span("a"):
        pass
    started = time.monotonic()
    traces.stop()
    assert time.monotonic() - started < 2 * traces.STOP_SECONDS
    assert collector.spans == []
