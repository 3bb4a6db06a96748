"""Logging: structlog's events go through the handlers of settings.LOGGING.

A line is text or a JSON object (settings.LOG_FORMAT). Both have the ids of the request, the tenant,
the API key and the task (`tenants.traces`), and neither has credentials or the details of
Postgres' errors.
"""

import logging.config
import re
import traceback
from types import TracebackType
from typing import Any

import structlog
from django.views.debug import SafeExceptionReporterFilter
from structlog.typing import EventDict, Processor, WrappedLogger

from tenants.redaction import redact
from tenants.traces import log_ids, logged_path


def one_line(text: str) -> str:
    """Return the text with characters that are not printable, except spaces, as escapes.

    These are line breaks, control characters of terminals, marks that change the text direction,
    characters without width, and lone surrogates: see `str.isprintable`.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


# Arguments of the standard library's loggers besides the message.
_LOGGER_OPTIONS = ("exc_info", "stack_info", "stacklevel")
# The attribute of a record with the fields of its JSON object.
_FIELDS = "konstruct_fields"
_render = structlog.processors.LogfmtRenderer()


# Details of Postgres' errors: the position in the statement, the key or the row that it refused.
# They may have many lines, and end with the exception.
_DETAILS = re.compile(
    r"^(?:LINE [0-9]+|DETAIL|CONTEXT|QUERY):.*?(?=\n\n(?:The above|During handling)|\Z)",
    re.MULTILINE | re.DOTALL,
)


class RedactingFormatter(logging.Formatter):
    """Formats a record as one line, and its traceback as indented lines.

    Credentials are removed, and the details of Postgres' errors, which contain content of users.
    Text of a request, an error or a person can neither imitate another record nor send codes to the
    terminal.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        """Format the line without the traceback."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 (the library's name)
        """Format the traceback without the details of Postgres' errors."""
        return _without_details(super().formatException(ei))

    def format(self, record: logging.LogRecord) -> str:
        """Format the record with the ids of this thread; `-` without a request id."""
        ids = log_ids()
        other_ids = [f"{name}={value}" for name, value in ids.items() if name != "request_id"]
        record.ids = " ".join([ids.get("request_id", "-"), *other_ids])
        line, *traceback = redact(super().format(record)).split("\n")
        return "\n".join([line, *(f"  {one_line(item)}" for item in traceback)])


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
            processors=[_json_fields, structlog.processors.JSONRenderer()],
        )


def fields(**values: Any) -> dict[str, Any]:
    """Return the `extra` of a log call that adds these fields to the line's JSON object."""
    return {_FIELDS: values}


def _json_fields(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Return the fields of a line's JSON object, in their order."""
    first = {name: event[name] for name in ("timestamp", "level", "logger")}
    event_fields = {"event": event["event"], **getattr(event["_record"], _FIELDS, {})}
    last = {name: event[name] for name in ("exception", "stack_info") if name in event}
    return {**first, **_redact_value({**event_fields, **log_ids(), **last}), **first}


def _redact_value(value: Any) -> Any:
    """Return a JSON value without credentials in its texts."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): _redact_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact_value(item) for item in value]
    return redact(str(value))


def _traceback(exc_info: tuple[type[BaseException], BaseException, TracebackType | None]) -> str:
    return _without_details("".join(traceback.format_exception(*exc_info)).rstrip("\n"))


def _without_details(text: str) -> str:
    """Return a traceback without the details of Postgres' errors."""
    return _DETAILS.sub("(details left out)", text)


class RouteFilter(logging.Filter):
    """Writes the route of a request instead of its path, which can have the id of a person.

    For the lines of `django.request`, whose first argument is the path.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; every record passes."""
        request = getattr(record, "request", None)
        if request is not None and isinstance(record.args, tuple) and record.args:
            record.args = (*record.args[:-1], logged_path(request))
        return True


class ForgedHostFilter(logging.Filter):
    """Makes Django's errors about forged Host headers warnings without a traceback.

    Anyone can cause them without a login.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; it passes if warnings are logged."""
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = None
        return logging.getLogger(record.name).isEnabledFor(logging.WARNING)


class UrlHidingFilter(SafeExceptionReporterFilter):
    """Hides settings that are URLs on Django's error page too: they may contain passwords."""

    hidden_settings = re.compile(
        rf"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL|LOCATION|HEADERS",
        re.IGNORECASE,
    )


def render_line(
    logger: WrappedLogger, method: str, event: EventDict
) -> tuple[tuple[str], dict[str, Any]]:
    """Return an event as the text of a line, `event key=value …`, and the logger's own arguments.

    Values with spaces or line breaks are quoted, so that none can imitate another line.
    """
    options = {name: event.pop(name) for name in _LOGGER_OPTIONS if name in event}
    name = str(event.pop("event", ""))
    options["extra"] = fields(event=name, **event)
    return (f"{name} {_render(logger, method, event)}".rstrip(),), options


# One list for all calls of `configure`: loggers keep the first one.
_processors: list[Processor] = [structlog.stdlib.filter_by_level, render_line]


def configure(config: dict[str, Any]) -> None:
    """Configure the standard library's logging, and structlog on top of it (LOGGING_CONFIG).

    With JSON lines, warnings of Python are lines too.
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
