"""App configuration of tenancy, in the public schema."""

from typing import Any

from django.apps import AppConfig
from django.db import connections


class ContentTypeCache:
    """Replaces the dictionary, by database alias, of `ContentTypeManager`: one for each connection.

    Ids of content types differ between schemas. Django has one cache per process, which
    django-tenants empties when a tenant is entered. This does not suffice for two threads in two
    tenants: one would read the ids that the other has just stored.
    """

    def __getitem__(self, using: str) -> dict[Any, Any]:
        cache: dict[Any, Any] = vars(connections[using]).setdefault("content_types", {})
        return cache

    def setdefault(self, using: str, _default: object) -> dict[Any, Any]:
        return self[using]

    def clear(self) -> None:
        for connection in connections.all(initialized_only=True):
            vars(connection).pop("content_types", None)


class TenantsConfig(AppConfig):
    """Tenants and their domains."""

    name = "tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        from django.contrib.contenttypes.models import ContentType

        import tenants.checks  # noqa: F401  (both need the app registry)

        ContentType.objects._cache = ContentTypeCache()  # type: ignore[attr-defined]
