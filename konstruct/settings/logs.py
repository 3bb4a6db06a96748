"""Logs: a line for each record, by its level."""

from konstruct.settings.environment import text

LOG_LEVEL = text("LOG_LEVEL", "INFO")
# Django's own, and structlog through it.
LOGGING_CONFIG = "konstruct.logs.configure"
DEFAULT_EXCEPTION_REPORTER_FILTER = "konstruct.logs.UrlHidingFilter"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "konstruct.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s",
        },
    },
    "filters": {"request_id": {"()": "konstruct.api.http.request_id.RequestIdFilter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request_id"],
        }
    },
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
        "sentence_transformers": {"level": "WARNING"},
        # At DEBUG it would log what Slack answers, tokens of new workspaces too.
        "slack_sdk": {"level": "CRITICAL"},
    },
}
