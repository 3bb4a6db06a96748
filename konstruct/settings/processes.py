"""Processes: threads of the web, Celery's broker, workers and beat, and the logs of all."""

import re
import ssl
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from konstruct.local import services
from konstruct.settings.applications import LLM_TIMEOUT
from konstruct.settings.deployment import EMBEDDED_CACHE, REDIS_URL
from konstruct.settings.environment import address, choice, number, refuse, text, url

# Worker, beat and owner worker touch this file while they do their work, for health checks. Each
# process needs a separate file.
HEARTBEAT_FILE = Path(text("HEARTBEAT_FILE")) if text("HEARTBEAT_FILE") else None

# The address for Prometheus, separate from the port of the web. Off unless it is set.
METRICS_ADDRESS = address("METRICS_ADDRESS")
# Directory of the files in which the processes of one machine, or of one container, count.
METRICS_DIR = Path(text("METRICS_DIR")) if text("METRICS_DIR") else None
if METRICS_ADDRESS and METRICS_DIR is None:
    METRICS_DIR = services.home() / "metrics"

# Threads of each web process for requests; each keeps a database connection.
WEB_THREADS = number("WEB_THREADS", 16)

# Replies that a worker process generates at the same time.
REPLY_CONCURRENCY = number("REPLY_CONCURRENCY", 500)
# By queue: parallel jobs of a worker process, and how many of them are only for tenants that have
# none in work (tenants/limits/fair_shares.py). Each job has a thread, which mostly waits for the
# language model or Slack. Embeddings are computed, by all cores for each job.
JOB_SLOTS = {
    "replies": (REPLY_CONCURRENCY, REPLY_CONCURRENCY // 10),
    "deliveries": (32, 3),
    "embeddings": (1, 0),
    "extractions": (8, 2),
    "sweeps": (1, 0),
}

CELERY_BROKER_URL = url("CELERY_BROKER_URL") or (
    services.broker_url() if EMBEDDED_CACHE else REDIS_URL
)
if CELERY_BROKER_URL.startswith("unix:"):
    sys.exit(
        "konstruct: Celery does not know unix://. Set CELERY_BROKER_URL to"
        " redis+socket:///PATH?virtual_host=NUMBER, with the path and the number of the database."
    )
# Without options of TLS in the URL kombu would accept each certificate.
CELERY_BROKER_USE_SSL = (
    {"ssl_cert_reqs": ssl.CERT_REQUIRED} if CELERY_BROKER_URL.startswith("rediss:") else None
)
# JSON only: a writer to the broker must not run code in the worker.
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
# Seconds after which another worker may do a job. A reply with four rounds of tools sends five
# requests to the language model.
TASK_TIME_LIMIT = 7 * LLM_TIMEOUT
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged when it is done, so that a process takes no more tasks than it has threads.
# The sweep finds the jobs of killed workers and of a flushed broker in Postgres.
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "replies"
CELERY_TASK_ROUTES = {
    "tenants.tasks.sweep": {"queue": "sweeps"},
    "tenants.tasks.send_password_links": {"queue": "deliveries"},
    "memory.tasks.*": {"queue": "embeddings"},
    "konstruct.channels.*": {"queue": "deliveries"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Accepting a message must not wait for a broker that is down: the sweeper enqueues it.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than a task may take, which begins no job after TASK_TIME_LIMIT. Nothing waits for the
    # tasks of a killed worker: the sweepers find their jobs.
    "visibility_timeout": 2 * TASK_TIME_LIMIT + 60,
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    # Retries of publishing: by default kombu would sleep for six seconds between them.
    "max_retries": 1,
    "interval_start": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "konstruct.celery:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "tenants.tasks.sweep",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "measure_usage": {
        "task": "konstruct.orchestrator.tasks.measure_usage",
        "schedule": 30.0,
        "options": {"expires": 30.0, "queue": "sweeps"},
    },
    "write_thread_states": {
        "task": "konstruct.orchestrator.tasks.write_thread_states",
        "schedule": 10.0,
        "options": {"expires": 10.0, "queue": "sweeps"},
    },
}

LOG_LEVEL = text("LOG_LEVEL", "INFO")
# text: lines that people read; json: an object a line, for programs.
LOG_FORMAT = choice("LOG_FORMAT", "text", ("text", "json"))
# Configures the standard library's logging and structlog.
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
    "filters": {
        "forged_host": {"()": "konstruct.logs.ForgedHostFilter"},
        "route": {"()": "konstruct.logs.RouteFilter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Instead of their own handlers, which log the content of requests.
        "django": {"level": "INFO", "propagate": True},
        "django.security.DisallowedHost": {"filters": ["forged_host"]},
        "django.server": {"level": "INFO", "propagate": True},
        # Refused requests have their line of konstruct.access.
        "django.request": {"level": "ERROR", "filters": ["route"]},
        "gunicorn.error": {"handlers": ["console"], "propagate": False},
        # Every task at INFO: the sweepers alone are four lines every five seconds.
        "celery.app.trace": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        # At DEBUG it would log prompts.
        "openai": {"level": "WARNING"},
        # Below, a line for each repeated export.
        "opentelemetry": {"level": "ERROR"},
        # At INFO three lines for each connection that is taken from the pool and given back.
        "psycopg.pool": {"level": "WARNING"},
        "sentence_transformers": {"level": "WARNING"},
        # At DEBUG it would log what Slack answers, tokens of new workspaces too.
        "slack_sdk": {"level": "CRITICAL"},
    },
}


# By OTLP over HTTP; the SDK adds /v1/traces.
OTEL_EXPORTER_OTLP_ENDPOINT = url("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_EXPORTER_OTLP_HEADERS = text("OTEL_EXPORTER_OTLP_HEADERS")
# The share of traces, 0 to 1, of requests whose client does not decide by traceparent.
OTEL_TRACES_SAMPLER_ARG = text("OTEL_TRACES_SAMPLER_ARG", "1")


# The SDK would only log invalid values, and trace everything.
if OTEL_EXPORTER_OTLP_ENDPOINT:
    if urlsplit(OTEL_EXPORTER_OTLP_ENDPOINT).scheme not in ("http", "https"):
        refuse("OTEL_EXPORTER_OTLP_ENDPOINT is not like http://collector:4318")
    if not re.fullmatch(r"0?\.\d+|0|1(\.0+)?", OTEL_TRACES_SAMPLER_ARG):
        refuse(f"OTEL_TRACES_SAMPLER_ARG={OTEL_TRACES_SAMPLER_ARG!r} is not between 0 and 1")
    try:
        version("opentelemetry-exporter-otlp-proto-http")
    except PackageNotFoundError:
        refuse(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed: unset it, or"
            " pip install -r requirements/tracing.txt"
        )
