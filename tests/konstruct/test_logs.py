"""What structlog is told goes the way of all log lines."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from django.conf import settings
from structlog.testing import capture_logs

from konstruct.logs import configure
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
        " task=2 messages=0 messages_left_out=0 memories=1 memories_left_out=0"
    )


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
