"""One way for all log lines: structlog's events go through the handlers of settings.LOGGING.

A line is text or a JSON object (settings.LOG_FORMAT). Both name the request, the tenant, the API
key and the task (`tenants.log_context`), and neither holds credentials or the details of Postgres'
errors.
"""

import logging.config
import re
import traceback
from types import TracebackType
from typing import Any

import structlog
from django.views.debug import SafeExceptionReporterFilter
from structlog.typing import EventDict, Processor, WrappedLogger

from tenants.log_context import log_ids
from tenants.redaction import redact


def one_line(text: str) -> str:
    """Return the text with whatever is no visible character, but for spaces, written as its escape.

    Those are line breaks and their Unicode kin, control characters that command a terminal
    what to do, marks that change the direction of text, characters without width, and halves of
    surrogate pairs: whatever `str.isprintable` says no to.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


# What the standard library's loggers take beside the message.
_LOGGER_OPTIONS = ("exc_info", "stack_info", "stacklevel")
# The attribute of a record that has the fields of its JSON object.
_FIELDS = "konstruct_fields"
_render = structlog.processors.LogfmtRenderer()


# What Postgres adds to an error: the place in the statement, the key or the whole row that it
# refused. It may have many lines, and ends with the exception.
_DETAILS = re.compile(
    r"^(?:LINE [0-9]+|DETAIL|CONTEXT|QUERY):.*?(?=\n\n(?:The above|During handling)|\Z)",
    re.MULTILINE | re.DOTALL,
)


class RedactingFormatter(logging.Formatter):
    """Formats a record as one line, and its traceback, if it has one, as lines that are indented.

    Credentials are taken out, and the details of Postgres' errors, which hold what users said.
    Whatever a request, an error or a person brings into a record can neither make a line that looks
    like a record of its own nor tell the terminal anything.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        """Format the line without the traceback."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 (the library's name)
        """Format the traceback, without what Postgres adds to its error."""
        return _without_details(super().formatException(ei))

    def format(self, record: logging.LogRecord) -> str:
        """Format the record, with the ids of this thread: a request's, or `-`, and the others."""
        ids = log_ids()
        named = [f"{name}={value}" for name, value in ids.items() if name != "request_id"]
        record.ids = " ".join([ids.get("request_id", "-"), *named])
        line, *traceback = redact(super().format(record)).split("\n")
        return "\n".join([line, *(f"  {one_line(each)}" for each in traceback)])


class JsonFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats a record as a JSON object in one line of ASCII.

    It has `timestamp` (ISO 8601, UTC), `level`, `logger` and `event`; of `request_id`, `tenant_id`,
    `key_id`, `task_name`, `task_id`, `trace_id` and `span_id` those that are known; the fields of
    the event; `exception` with the traceback as text.
    """

    def __init__(self) -> None:
        super().__init__(
            foreign_pre_chain=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.ExceptionRenderer(_traceback),
            ],
            processors=[_object_of, structlog.processors.JSONRenderer()],
        )


def fields(**values: Any) -> dict[str, Any]:
    """Return the `extra` of a log call that adds these fields to the line's JSON object."""
    return {_FIELDS: values}


def _object_of(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Return the fields of a line's JSON object, in their order."""
    first = {name: event[name] for name in ("timestamp", "level", "logger")}
    given = {"event": event["event"], **getattr(event["_record"], _FIELDS, {})}
    last = {name: event[name] for name in ("exception", "stack_info") if name in event}
    return {**first, **_redacted({**given, **log_ids(), **last}), **first}


def _redacted(value: Any) -> Any:
    """Return a value as JSON has it, without the credentials in its texts."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): _redacted(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(each) for each in value]
    return redact(str(value))


def _traceback(
    exc_info: tuple[type[BaseException], BaseException, TracebackType | None],
) -> str:
    return _without_details("".join(traceback.format_exception(*exc_info)).rstrip("\n"))


def _without_details(text: str) -> str:
    """Return a traceback without the details of Postgres' errors."""
    return _DETAILS.sub("(details left out)", text)


class UrlHidingFilter(SafeExceptionReporterFilter):
    """Hides settings that are URLs on Django's page of an error, too: they may hold passwords."""

    hidden_settings = re.compile(
        rf"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL|LOCATION|HEADERS",
        re.IGNORECASE,
    )


def as_line(
    logger: WrappedLogger, method: str, event: EventDict
) -> tuple[tuple[str], dict[str, Any]]:
    """An event as a line's text, `event key=value …`, with what the logger itself understands.

    Values are quoted where they hold spaces or line breaks, so that none can pose as another line.
    """
    options = {name: event.pop(name) for name in _LOGGER_OPTIONS if name in event}
    name = str(event.pop("event", ""))
    options["extra"] = fields(event=name, **event)
    return (f"{name} {_render(logger, method, event)}".rstrip(),), options


# One list, however often logging is configured: loggers keep the one that they met first.
_processors: list[Processor] = [
    structlog.stdlib.filter_by_level,
    as_line,
]


def configure(config: dict[str, Any]) -> None:
    """Configure the standard library's logging, and structlog on top of it (LOGGING_CONFIG).

    Where lines are JSON, warnings of Python are lines too.
    """
    logging.config.dictConfig(config)
    if config["handlers"]["console"]["formatter"] == "json":
        logging.captureWarnings(capture=True)
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
