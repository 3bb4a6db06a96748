"""Traces: spans go to a collector of OpenTelemetry. Off without its address."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from konstruct.settings.environment import refuse, text, url

# By OTLP over HTTP; the SDK adds /v1/traces.
OTEL_EXPORTER_OTLP_ENDPOINT = url("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_EXPORTER_OTLP_HEADERS = text("OTEL_EXPORTER_OTLP_HEADERS")
# The share of traces, 0 to 1, of requests whose client does not decide by traceparent.
OTEL_TRACES_SAMPLER_ARG = text("OTEL_TRACES_SAMPLER_ARG", "1")


def _is_installed() -> bool:
    names = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    try:
        return all(find_spec(name) is not None for name in names)
    except ModuleNotFoundError:  # a parent is missing
        return False


def _is_ratio(value: str) -> bool:
    try:
        return 0 <= float(value) <= 1
    except ValueError:
        return False


# The SDK would only log invalid values, and trace everything.
if OTEL_EXPORTER_OTLP_ENDPOINT:
    if urlsplit(OTEL_EXPORTER_OTLP_ENDPOINT).scheme not in ("http", "https"):
        refuse("OTEL_EXPORTER_OTLP_ENDPOINT is not like http://collector:4318")
    if not _is_ratio(OTEL_TRACES_SAMPLER_ARG):
        refuse(f"OTEL_TRACES_SAMPLER_ARG={OTEL_TRACES_SAMPLER_ARG!r} is not between 0 and 1")
    if not _is_installed():
        refuse(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed: unset it, or"
            " pip install -r requirements/tracing.txt"
        )
