"""Health of this process and of what it needs, for load balancers and compose files."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Final

from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_redis import get_redis_connection

from konstruct.celery import app
from memory.embedding.embedder import is_loaded, load_in_background, model_version
from memory.exceptions import EmbeddingModelError
from tenants.context import connection, public_scope
from tenants.models import Tenant
from tenants.schemas.migration_state import is_fitting, known_migrations

CHECK_SECONDS = 5

logger = logging.getLogger(__name__)
_up_to_date = threading.Event()


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer as long as this process can answer at all."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> JsonResponse:
    """Answer 200 if everything that this process needs is there, else 503 with what is not."""
    threads = ThreadPoolExecutor(len(CHECKS))
    checks = {name: threads.submit(check) for name, check in CHECKS.items()}
    wait(checks.values(), CHECK_SECONDS)
    threads.shutdown(wait=False)
    state = {name: _outcome(name, check) for name, check in checks.items()}
    well = all(words == "ok" for words in state.values())
    document = {"status": "ok" if well else "unavailable", "checks": state}
    response = JsonResponse(document, status=200 if well else 503)
    if set(state.values()) == {"ok", "loading"}:
        # Every start comes by here: that is no error to log.
        response._has_been_logged = True  # type: ignore[attr-defined]  # Django looks at it
    return response


def _outcome(name: str, check: Future[str]) -> str:
    """What a check returned; its failure goes into the log, not to a caller without a key."""
    if not check.done():
        return "timed out"
    if error := check.exception():
        logger.warning("%s is unreachable", name, exc_info=error)
        return "unreachable"
    return check.result()


def _database() -> str:
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _cache() -> str:
    get_redis_connection().ping()
    return "ok"


def _broker() -> str:
    with app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=2)
    return "ok"


def _model() -> str:
    """Whether the embedding model's files are there, and loaded."""
    try:
        model_version()
    except EmbeddingModelError:
        return "missing"
    if is_loaded():
        return "ok"
    load_in_background()  # where no web process has begun it already
    return "loading"


def _migrations() -> str:
    """Whether the public schema and a tenant fit the code; known once, for the code stays.

    A tenant that is behind is answered with 503 itself, and keeps nobody else from being served.
    Where all are, they wait for `manage.py migrate`.
    """
    if _up_to_date.is_set():
        return "ok"
    with closing(connection), public_scope():
        applied = MigrationRecorder(connection).applied_migrations()
        if not known_migrations() <= {f"{app}.{name}" for app, name in applied}:
            return "behind: run manage.py migrate"
        tenants = Tenant.objects.serving()
        if tenants.exists() and not tenants.filter(is_fitting()).exists():
            return "all tenants are behind: run manage.py migrate"
    _up_to_date.set()
    return "ok"


CHECKS: Final[Mapping[str, Callable[[], str]]] = {
    "database": _database,
    "cache": _cache,
    "broker": _broker,
    "model": _model,
    "migrations": _migrations,
}
