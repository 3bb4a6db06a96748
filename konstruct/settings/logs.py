"""Logs: a line for each record, by its level."""

from konstruct.settings.environment import refuse, text

LOG_LEVEL = text("LOG_LEVEL", "INFO")
# text: lines that people read; json: an object a line, for programs.
LOG_FORMAT = text("LOG_FORMAT", "text")
if LOG_FORMAT not in ("text", "json"):
    refuse(f"LOG_FORMAT={LOG_FORMAT!r} is neither text nor json")
# Django's own, and structlog through it.
LOGGING_CONFIG = "konstruct.logs.configure"
DEFAULT_EXCEPTION_REPORTER_FILTER = "konstruct.logs.UrlHidingFilter"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "konstruct.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s [%(ids)s]: %(message)s",
        },
        "json": {"()": "konstruct.logs.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Instead of the handlers that they bring along, whose lines hold whatever a request holds.
        "django": {"level": "INFO", "propagate": True},
        "django.server": {"level": "INFO", "propagate": True},
        "gunicorn.error": {"handlers": ["console"], "propagate": False},
        # Every task at INFO: the sweepers alone are four lines every five seconds.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        # At DEBUG it would log prompts.
        "openai": {"level": "WARNING"},
        # At INFO three lines for each connection that is taken from the pool and given back.
        "psycopg.pool": {"level": "WARNING"},
        "sentence_transformers": {"level": "WARNING"},
        # At DEBUG it would log what Slack answers, tokens of new workspaces too.
        "slack_sdk": {"level": "CRITICAL"},
    },
}
