"""A cache of content types for each connection, because their ids differ between schemas.

Django has one cache per process. django-tenants empties it when a tenant is entered, which does not
suffice for two threads in two tenants: one would read the ids that the other has just stored.
"""

from typing import Any, cast

from django.contrib.contenttypes.models import ContentType
from django.db import connections

Cache = dict[Any, ContentType]


class ConnectionCache:
    """Replaces the dictionary, by database alias, of `ContentTypeManager`."""

    def __getitem__(self, using: str) -> Cache:
        return cast(Cache, vars(connections[using]).setdefault("content_types", {}))

    def setdefault(self, using: str, _default: Cache) -> Cache:
        return self[using]

    def clear(self) -> None:
        for connection in connections.all(initialized_only=True):
            vars(connection).pop("content_types", None)


def cache_per_connection() -> None:
    """Replace the cache of `ContentType.objects`."""
    ContentType.objects._cache = ConnectionCache()  # type: ignore[attr-defined]  # Django's own
