"""Health of this process and of what it needs, for load balancers and compose files."""

import logging
from collections.abc import Callable

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from django_redis import get_redis_connection

logger = logging.getLogger(__name__)


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer as long as this process can answer at all."""
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the database and the cache answer, else 503 with what does not."""
    checks = {"database": _works(_ask_database), "cache": _works(_ask_cache)}
    well = all(checks.values())
    state = {name: "ok" if works else "unreachable" for name, works in checks.items()}
    return JsonResponse(
        {"status": "ok" if well else "unavailable", "checks": state}, status=200 if well else 503
    )


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_cache() -> None:
    get_redis_connection().ping()


def _works(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except Exception as error:  # any failure at all means: not ready
        logger.warning("Not ready: %s failed: %s", ask.__name__, error)
        return False
    return True
