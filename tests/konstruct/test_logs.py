"""What structlog is told goes the way of all log lines."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from django.conf import settings
from structlog.testing import capture_logs

from konstruct.logs import RedactingFormatter, configure
from memory.context import WorkingContextCompiler

logger = structlog.get_logger("konstruct.test")


def test_an_event_is_a_line_of_the_standard_librarys_logger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        logger.info("compiled", total=28, tier="fast", note='a "b"\nERROR forged: c', none=None)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("konstruct.test", logging.INFO)
    assert record.getMessage() == (
        r'compiled total=28 tier=fast note="a \"b\"\nERROR forged: c" none='
    )


FORGED = "x\n2026-01-01 ERROR forged\r\x1b[31m\x00\x7f\x85\x9b\u2028\u2029\u202e\u2066\u200b\ud800"
ESCAPED = (
    r"x\n2026-01-01 ERROR forged\r\x1b[31m\x00\x7f\x85\x9b\u2028\u2029\u202e\u2066\u200b\ud800"
)


def lines_of(message: str, *arguments: object, error: BaseException | None = None) -> list[str]:
    """The lines of a record, as the settings format it."""
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("a", logging.ERROR, "", 0, message, arguments, exc_info)
    record.request_id = "-"
    formatter = RedactingFormatter(settings.LOGGING["formatters"]["line"]["format"])
    return formatter.format(record).splitlines()


def test_a_record_is_one_line_whatever_it_holds() -> None:
    (line,) = lines_of("Not Found: /%s", FORGED)
    assert line.endswith(f"ERROR a [-]: Not Found: /{ESCAPED}")
    (line,) = lines_of(FORGED)
    assert line.endswith(f"ERROR a [-]: {ESCAPED}")


def test_what_people_write_stays_readable() -> None:
    said = "Zoë, 東京, שלום, 🙂 and a space"
    assert lines_of(said)[0].endswith(f": {said}")


def test_a_traceback_cannot_pose_as_a_record() -> None:
    try:
        {}[FORGED]
    except KeyError as error:
        first, *traceback = lines_of("failed", error=error)
    assert first.endswith("failed")
    assert traceback[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in traceback)


@pytest.mark.slow
def test_every_line_of_a_process_is_formatted_so() -> None:
    code = (
        "import django; django.setup(); import logging; from django.conf import settings;"
        "names = ['', 'django.request', 'django.server', 'django.security.DisallowedHost',"
        " 'gunicorn.error', 'konstruct.access', 'celery.worker'];"
        "[logging.getLogger(name).error('from %r %s', name, chr(10) + 'forged') for name in names]"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(settings.BASE_DIR),
        env={"DJANGO_SETTINGS_MODULE": "konstruct.settings", "DEBUG": "true"},
    )
    assert [line[-8:] for line in process.stderr.splitlines()] == [r"\nforged"] * 7


def test_levels_of_the_settings_hold(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        logger.info("compiled")
    assert caplog.records == []


def test_percent_signs_are_text_and_exceptions_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    try:
        int("why")
    except ValueError:
        logger.exception("100 %s failed", share="5%")
    (record,) = caplog.records
    assert record.getMessage() == "100 %s failed share=5%"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


def test_the_tokens_of_each_section_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        WorkingContextCompiler("fast").compile("You are kind.", [], ["tea"], "Why?")
    (record,) = caplog.records
    assert record.name == "memory.context.working"
    assert record.getMessage() == (
        "working_context_compiled model_tier=fast budget=8000 total=7 system=4 session=0 memory=1"
        " task=2 messages=0 messages_left_out=0 memories=1 memories_left_out=0 task_cut=0"
    )


@pytest.mark.slow
def test_a_process_writes_one_kind_of_line() -> None:
    code = (
        "import django; django.setup(); import structlog;"
        "structlog.get_logger('konstruct.test').warning('compiled', total=28)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(settings.BASE_DIR),
        env={"DJANGO_SETTINGS_MODULE": "konstruct.settings"},
    )
    assert process.stdout == ""
    assert process.stderr.rstrip().endswith("WARNING konstruct.test [-]: compiled total=28")


def test_configuring_again_changes_nothing_for_loggers_that_are_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger.info("met")
    with monkeypatch.context() as patch:
        patch.setattr("logging.config.dictConfig", lambda config: None)
        configure(settings.LOGGING)
    with capture_logs() as logs:
        logger.info("compiled", total=28)
    assert logs == [{"event": "compiled", "log_level": "info", "total": 28}]
