"""Health of this process and of what it needs, for load balancers and compose files."""

import asyncio
import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from django_redis import get_redis_connection
from health_check.base import HealthCheck
from health_check.checks import Database
from health_check.exceptions import ServiceUnavailable
from health_check.views import HealthCheckView

from konstruct.celery import app
from memory.embeddings import model_version
from memory.exceptions import EmbeddingModelError
from tenants.context import public_scope, tenant_scope
from tenants.models import Tenant


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer as long as this process can answer at all."""
    return JsonResponse({"status": "ok"})


@dataclasses.dataclass
class Cache(HealthCheck):
    """The cache answers. (The library's own check would write a key that is no tenant's.)"""

    def run(self) -> None:
        """Ask it."""
        try:
            get_redis_connection().ping()
        except Exception as error:  # whatever it is, there is no cache
            raise ServiceUnavailable("unreachable") from error


@dataclasses.dataclass
class Broker(HealthCheck):
    """The broker takes tasks."""

    def run(self) -> None:
        """Connect to it."""
        try:
            with app.connection_for_write() as broker:
                broker.ensure_connection(max_retries=1, timeout=2)
        except Exception as error:  # whatever it is, there is no broker
            raise ServiceUnavailable("unreachable") from error


@dataclasses.dataclass
class Model(HealthCheck):
    """The embedding model's files are there; a process loads them when it first needs them."""

    def run(self) -> None:
        """Look for it."""
        try:
            model_version()
        except EmbeddingModelError as error:
            raise ServiceUnavailable("missing") from error


@dataclasses.dataclass
class Migrations(HealthCheck):
    """No schema is behind the code. Known once for a process, whose code does not change."""

    up_to_date: ClassVar[bool] = False
    timeout = timedelta(seconds=30)

    def run(self) -> None:
        """Compare what was applied in every schema with what there is to apply."""
        if Migrations.up_to_date:
            return
        try:
            known = set(MigrationLoader(None).disk_migrations or {})
            with public_scope():
                if not known <= _applied():
                    raise ServiceUnavailable("behind: run manage.py migrate")
                serving = list(Tenant.objects.exclude(state=Tenant.State.PROVISIONING))
            behind = 0
            for tenant in serving:
                with tenant_scope(tenant.id):
                    behind += not known <= _applied()
        finally:
            connection.close()  # this thread is one of the event loop's, and ends with it
        if behind:
            raise ServiceUnavailable(f"{behind} tenants are behind: run manage.py migrate")
        Migrations.up_to_date = True


class ReadyView(HealthCheckView):
    """Answers 200 if everything that this process needs is there, else 503 with what is not."""

    http_method_names = ["get", "head"]
    named_checks: ClassVar[Mapping[str, type[HealthCheck]]] = {
        "database": Database,
        "cache": Cache,
        "broker": Broker,
        "model": Model,
        "migrations": Migrations,
    }

    async def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask everything at once. Always JSON: probes accept anything, and people read it too."""
        results = await asyncio.gather(
            *(check().get_result() for check in self.named_checks.values())
        )
        state = {
            name: "ok" if result.error is None else result.error.message or "unavailable"
            for name, result in zip(self.named_checks, results, strict=True)
        }
        well = all(words == "ok" for words in state.values())
        document = {"status": "ok" if well else "unavailable", "checks": state}
        return JsonResponse(document, status=200 if well else 503)

    async def head(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer as to a GET; the server leaves the body out."""
        return await self.get(request, *args, **kwargs)


def _applied() -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())
