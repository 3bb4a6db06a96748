"""Health of this process and of its servers, for load balancers and compose files."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial

from django.conf import settings
from django.db import connections
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_redis import get_redis_connection
from redis.exceptions import ResponseError

from konstruct.celery import app
from konstruct.heartbeats import BEAT, OWNER, QUEUES, has_heartbeat
from memory.embedding.embedder import is_loaded, load_in_background, model_version
from memory.exceptions import EmbeddingModelError
from tenants.checks import require_writable
from tenants.context import connection, public_scope
from tenants.models import Tenant
from tenants.outages import OUTAGES, NotWritable, outage_reason
from tenants.schemas.migrating import is_fitting, missing_in_public

logger = logging.getLogger(__name__)

# Time limit of a check, and for how long its result is cached.
CHECK_SECONDS = 5
RESULT_SECONDS = 2.0

_up_to_date = threading.Event()


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Return 200 while this process can answer."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> JsonResponse:
    """Return 200 if this process can serve requests, else 503, with the state of each check.

    If another part of the deployment is missing, the status is `degraded` with 200, because it
    would not help to take this process out of service.
    """
    state = readiness.state()
    failed = {name for name, outcome in state.items() if outcome != "ok"}
    if not failed:
        status = "ok"
    elif not failed & CHECKS.keys():
        status = "degraded"
    else:
        status = "unavailable"
    document = {"status": status, "checks": state}
    response = JsonResponse(document, status=503 if status == "unavailable" else 200)
    # `_outcome` logs each check that fails. Probes also come while a process starts.
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django looks at it
    return response


class Readiness:
    """The last results of the checks. One thread at a time renews them, after RESULT_SECONDS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: dict[str, str] = {}
        self._until = 0.0

    def state(self) -> dict[str, str]:
        """Return the outcome of each check; the last one while another thread makes the checks."""
        if time.monotonic() < self._until:
            return self._state
        if self._lock.acquire(blocking=not self._state):
            try:
                if time.monotonic() >= self._until:
                    self._state = _run_checks(self._state)
                    self._until = time.monotonic() + RESULT_SECONDS
            finally:
                self._lock.release()
        return self._state


readiness = Readiness()


def _run_checks(previous: Mapping[str, str]) -> dict[str, str]:
    """Run all checks in parallel; log the beginning and the end of a failure."""
    checks = {**CHECKS, **DEGRADING}
    if settings.TENANT_DATABASES:
        checks["tenant_databases"] = _tenant_databases
    threads = ThreadPoolExecutor(len(checks))
    futures = {name: threads.submit(check) for name, check in checks.items()}
    wait(futures.values(), CHECK_SECONDS)
    threads.shutdown(wait=False)
    return {name: _outcome(name, check, previous.get(name)) for name, check in futures.items()}


def _outcome(name: str, check: Future[str | None], previous: str | None) -> str:
    """Return the result of a check. An error is logged, and not shown to callers without a key."""
    if not check.done():
        outcome, reason = "timed out", f"no answer in {CHECK_SECONDS} s"
    elif error := check.exception():
        outcome = (
            "not writable" if isinstance(error, NotWritable | ResponseError) else "unreachable"
        )
        reason = outage_reason(error)
    else:
        outcome = reason = check.result() or "ok"
    if outcome != previous and outcome != "loading" and (previous or outcome != "ok"):
        level = logging.INFO if outcome == "ok" else logging.WARNING
        logger.log(level, "Readiness: %s: %s", name, reason)
    return outcome


def _tenant_databases() -> None:
    """Check that each server of TENANT_DATABASES accepts connections."""
    for server in settings.TENANT_DATABASES:
        with closing(connections[server].copy()) as probe:
            probe.ensure_connection()


def _heartbeat(process: str) -> str:
    try:
        return "ok" if has_heartbeat(process) else "missing"
    except OUTAGES:
        return "unknown"  # the cache has its own check


def _cache() -> None:
    """Write a key: a server that is full, read-only or cannot save answers a ping as well."""
    get_redis_connection().set("public:health", 1, ex=CHECK_SECONDS)


def _broker() -> None:
    with app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=2)


def _model() -> str:
    """Check that the files of the embedding model exist and are loaded."""
    try:
        model_version()
    except EmbeddingModelError:
        return "missing"
    if is_loaded():
        return "ok"
    load_in_background()  # if nothing has begun it yet
    return "loading"


def _migrations() -> str:
    """Return whether the public schema and a tenant fit the code. A success is remembered.

    A tenant that is behind gets a 503, and the other tenants are served. If all are behind, they
    wait for `manage.py migrate`.
    """
    if _up_to_date.is_set():
        return "ok"
    with closing(connection), public_scope():
        if missing_in_public():
            return "behind: run manage.py migrate"
        tenants = Tenant.objects.serving()
        if tenants.exists() and not tenants.filter(is_fitting()).exists():
            return "all tenants are behind: run manage.py migrate"
    _up_to_date.set()
    return "ok"


# No request is served if one of these fails. Without a result the check has succeeded.
CHECKS: Mapping[str, Callable[[], str | None]] = {
    "database": require_writable,
    "cache": _cache,
    "broker": _broker,
    "model": _model,
    "migrations": _migrations,
}
# If one of these fails, requests are served, but replies, retries, erasures or new tenants wait.
DEGRADING: Mapping[str, Callable[[], str | None]] = {
    process: partial(_heartbeat, process) for process in (*QUEUES, BEAT, OWNER)
}

urlpatterns = [
    path("live", live, name="health-live"),
    path("ready", ready, name="health-ready"),
]
