"""Events of structlog go through the handlers of all log lines."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import structlog
from django.conf import settings
from django.test import Client
from structlog.contextvars import bound_contextvars

from konstruct.celery import app
from konstruct.logs import JsonFormatter, RedactingFormatter
from memory.context import WorkingContextCompiler
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.running import run_python

logger = structlog.get_logger("konstruct.test")


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def json_lines() -> Iterator[Lines]:
    """Collect log lines from now on, each as the object of LOG_FORMAT=json."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.setLevel(level)
    root.removeHandler(handler)


FORGED = "x\n2026-01-01 ERROR forged\r\x1b[31m\x00\x7f\x85\x9b\u2028\u2029\u202e\u2066\u200b\ud800"
ESCAPED = (
    r"x\n2026-01-01 ERROR forged\r\x1b[31m\x00\x7f\x85\x9b\u2028\u2029\u202e\u2066\u200b\ud800"
)


def lines_of(message: str, *arguments: object, error: BaseException | None = None) -> list[str]:
    """Return the lines of a record in the format of the settings."""
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("a", logging.ERROR, "", 0, message, arguments, exc_info)
    formatter = RedactingFormatter(settings.LOGGING["formatters"]["text"]["format"])
    return formatter.format(record).splitlines()


def test_log_record_is_one_line_with_any_content() -> None:
    (line,) = lines_of("Not Found: /%s", FORGED)
    assert line.endswith(f"ERROR a [-]: Not Found: /{ESCAPED}")
    (line,) = lines_of(FORGED)
    assert line.endswith(f"ERROR a [-]: {ESCAPED}")


def test_a_traceback_cannot_pose_as_a_record() -> None:
    try:
        {}[FORGED]
    except KeyError as error:
        first, *traceback = lines_of("failed", error=error)
    assert first.endswith("failed")
    assert traceback[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in traceback)


def test_the_tokens_of_each_section_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        WorkingContextCompiler("fast").compile("You are kind.", [], ["tea"], "Why?")
    (record,) = caplog.records
    assert record.name == "memory.context.working"
    assert record.getMessage() == (
        "working_context_compiled model_tier=fast budget=8000 total=7 system=4 session=0 memory=1"
        " task=2 messages=0 messages_left_out=0 memories=1 memories_left_out=0 task_cut=0"
    )


def test_a_refused_request_has_no_line_beside_that_of_the_access_log(
    db: None, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/nothing", headers={"Host": "unknown.localhost"}).status_code == 404
    assert caplog.records == []


@pytest.mark.slow
def test_a_process_writes_one_kind_of_line() -> None:
    code = (
        "import django; django.setup(); import structlog;"
        "structlog.get_logger('konstruct.test').warning('compiled', total=28)"
    )
    process = run_python(
        "-c", code, check=True, env={"DJANGO_SETTINGS_MODULE": "konstruct.settings"}
    )
    assert process.stdout == ""
    assert process.stderr.rstrip().endswith("WARNING konstruct.test [-]: compiled total=28")


def test_a_json_line_has_the_event_its_fields_and_the_ids(
    json_lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest stores records of the root logger, and its workers cannot send unpaired surrogates.
    root, own_logger = logging.getLogger(), logging.getLogger("konstruct.test")
    json_handlers = [
        handler for handler in root.handlers if isinstance(handler.formatter, JsonFormatter)
    ]
    monkeypatch.setattr(own_logger, "handlers", json_handlers)
    monkeypatch.setattr(own_logger, "propagate", False)
    with bound_contextvars(request_id="job-7", key_id="k", task_name="t", task_id="1", other="x"):
        logger.info("compiled", total=28, tier=None, near=[UUID(int=1)], note=FORGED)
    (line,) = json_lines()
    moment = datetime.fromisoformat(line.pop("timestamp"))
    assert moment.tzinfo == UTC
    assert line == {
        "level": "info", "logger": "konstruct.test", "event": "compiled", "total": 28,
        "tier": None, "near": [str(UUID(int=1))], "note": FORGED,
        "request_id": "job-7", "key_id": "k", "task_name": "t", "task_id": "1",
    }  # fmt: skip


def test_an_exception_is_a_field_of_its_line_without_credentials_and_details(
    json_lines: Lines,
) -> None:
    secret = "postgresql://konstruct_app:hunter2hunter2@db/konstruct"
    text = "I am ill"

    def fail() -> None:
        raise ValueError(f"no connection to {secret}\nDETAIL:  Key (content)=({text}) exists.")

    try:
        fail()
    except ValueError:
        logging.getLogger("a").exception("failed for %s", secret, extra={"request": secret})
        logger.exception("failed", at=secret, more={"of": [secret]})
    lines = json_lines()
    assert [line["event"] for line in lines] == [
        "failed for postgresql://***@db/konstruct", "failed",
    ]  # fmt: skip
    for line in lines:
        assert line["exception"].startswith("Traceback (most recent call last):\n")
        assert line["exception"].endswith("(details left out)")
    assert "hunter2" not in str(lines)
    assert text not in str(lines)
    assert "request" not in lines[0]


def test_tenants_that_take_turns_on_the_same_threads_have_lines_of_their_own(
    json_lines: Lines, tenant_a: Tenant, tenant_b: Tenant
) -> None:
    tenants = [tenant_a, tenant_b, None]

    def log(number: int) -> None:
        tenant = tenants[number % len(tenants)]
        if tenant is None:
            logger.info("said", by=None)
            return
        with tenant_scope(tenant.id):
            logger.info("said", by=str(tenant.id))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(log, range(60)))
    lines = json_lines()
    assert len(lines) == 60
    assert all(line.get("tenant_id") == line["by"] for line in lines)


def test_a_task_is_named_as_long_as_it_runs(json_lines: Lines) -> None:
    @app.task(name="tests.logging")
    def fails() -> None:
        logger.info("inside")
        raise ValueError

    try:
        with bound_contextvars(request_id="job-7"):
            for _ in range(2):
                assert fails.apply().failed()
            logger.info("outside")
    finally:
        app.tasks.pop("tests.logging")
    inside = [line for line in json_lines() if line["event"] == "inside"]
    assert [line["task_name"] for line in inside] == ["tests.logging"] * 2
    assert len({line["task_id"] for line in inside}) == 2
    outside = json_lines()[-1]
    assert outside["request_id"] == "job-7"
    assert "task_id" not in outside


@pytest.mark.django_db
def test_a_forged_host_is_one_warning_without_a_traceback(json_lines: Lines) -> None:
    assert Client(headers={"Host": "evil.example:x"}).get("/admin/").status_code == 400
    (line,) = [each for each in json_lines() if each["logger"] == "django.security.DisallowedHost"]
    assert (line["level"], "exception" in line) == ("warning", False)
