"""One way for all log lines: structlog's events go through the handlers of settings.LOGGING."""

import logging.config
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# What the standard library's loggers take beside the message.
_LOGGER_OPTIONS = ("exc_info", "stack_info", "stacklevel")
_render = structlog.processors.LogfmtRenderer()


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
