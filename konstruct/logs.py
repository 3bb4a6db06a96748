"""One way for all log lines: structlog's events go through the handlers of settings.LOGGING."""

import logging.config
import re
from typing import Any

import structlog
from django.views.debug import SafeExceptionReporterFilter
from structlog.typing import EventDict, Processor, WrappedLogger

from konstruct.printable import one_line
from tenants.redaction import redact

# What the standard library's loggers take beside the message.
_LOGGER_OPTIONS = ("exc_info", "stack_info", "stacklevel")
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
        return _DETAILS.sub("(details left out)", super().formatException(ei))

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
        line, *traceback = redact(super().format(record)).split("\n")
        return "\n".join([line, *(f"  {one_line(each)}" for each in traceback)])


class UrlHidingFilter(SafeExceptionReporterFilter):
    """Hides settings that are URLs on Django's page of an error, too: they may hold passwords."""

    hidden_settings = re.compile(
        rf"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL|LOCATION", re.IGNORECASE
    )


def as_line(
    logger: WrappedLogger, method: str, event: EventDict
) -> tuple[tuple[str], dict[str, Any]]:
    """An event as a line's text, `event key=value …`, with what the logger itself understands.

    Values are quoted where they hold spaces or line breaks, so that none can pose as another line.
    """
    options = {name: event.pop(name) for name in _LOGGER_OPTIONS if name in event}
    name = str(event.pop("event", ""))
    return (f"{name} {_render(logger, method, event)}".rstrip(),), options


# One list, however often logging is configured: loggers keep the one that they met first.
_processors: list[Processor] = [
    structlog.stdlib.filter_by_level,
    structlog.contextvars.merge_contextvars,
    as_line,
]


def configure(config: dict[str, Any]) -> None:
    """Configure the standard library's logging, and structlog on top of it (LOGGING_CONFIG)."""
    logging.config.dictConfig(config)
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
