"""Database backend: django-tenants', with row-level security set in the same statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.backends.postgresql.base import TIMESTAMPTZ_OID
from django.db.backends.postgresql.psycopg_any import register_tzloader
from django.db.backends.utils import CursorWrapper
from django.utils.module_loading import import_string
from django_tenants.postgresql_backend import base
from psycopg import sql
from psycopg.pq import Format

from tenants.exceptions import TenantPinned
from tenants.naming import tenant_id_of
from tenants.postgresql.cursors import (
    TenantCursor,
    TenantNamedCursor,
    TenantServerBindingCursor,
)
from tenants.postgresql.introspection import OwnSchemaIntrospection
from tenants.postgresql.operations import TenantOperations
from tenants.postgresql.prepared import TenantPreparedCursor

# The statements of a recall take Postgres 0.23 MB, those of a large scope 0.5, on each connection
# and for each tenant. Of more than these the ones longest unused are given up, and prepared anew
# if needed.
PREPARED_MAX = 128


@cache
def _before_connect(dotted_path: str) -> Callable[[], None]:
    hook: Callable[[], None] = import_string(dotted_path)
    return hook


@lru_cache(maxsize=4096)
def _enter_tenant_sql(schemas: tuple[str, ...], tenant_id: UUID | None) -> bytes:
    """The statement that names search_path and tenant; kept, since every request enters twice."""
    search_path = sql.SQL(",").join(sql.Identifier(schema) for schema in schemas)
    return (
        sql.SQL(
            "SELECT set_config('search_path', {}, false),"
            " set_config('app.current_tenant', {}, false)"
        )
        .format(search_path.as_string(), str(tenant_id or ""))
        .as_bytes()
    )


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that is always in exactly one schema, and in no tenant unless in its schema.

    ``set_tenant`` only notes what is wanted; the cursors (see ``cursors.py``) say it to Postgres
    before every statement. No rollback, reconnect or pooled connection can bring back another
    tenant's settings, since none of them is ever trusted to have survived.
    """

    # While set, no other tenant can be entered on this connection: see tenants/context.py.
    pinned_tenant: UUID | None = None
    ops_class = TenantOperations
    _named_cursor: Any = TenantNamedCursor
    include_public_schema: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.introspection = OwnSchemaIntrospection(self)

    @property
    def tenant_id(self) -> UUID | None:
        """The tenant whose schema this connection is in."""
        return tenant_id_of(self.schema_name)

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:
        """Enter the tenant's schema from the next statement on; raise `TenantPinned` if pinned."""
        entered = tenant_id_of(tenant.schema_name)
        if self.pinned_tenant is not None and entered not in (None, self.pinned_tenant):
            raise TenantPinned(
                f"this code serves tenant {self.pinned_tenant} and cannot enter tenant {entered}"
            )
        super().set_tenant(tenant, include_public)
        self._want_settings()

    @contextmanager
    def own_schema_only(self) -> Iterator[None]:
        """Leave the public schema out of the search_path."""
        include_public = self.include_public_schema
        self.include_public_schema = False
        self._want_settings()
        try:
            yield
        finally:
            self.include_public_schema = include_public
            self._want_settings()

    def _want_settings(self) -> None:
        """Compute the statement that the cursors send, and hand it to them."""
        self._enter_tenant_sql = _enter_tenant_sql(
            tuple(self._get_cursor_search_paths()), self.tenant_id
        )
        if self.connection is not None:
            self.connection.enter_tenant_sql = self._enter_tenant_sql

    def _handle_search_path(self, cursor: Any = None) -> None:
        """Do nothing where django-tenants sets the search_path: the cursors do it themselves."""

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        server_side_binding = self.settings_dict["OPTIONS"].get("server_side_binding") is True
        params["cursor_factory"] = (
            TenantServerBindingCursor if server_side_binding else TenantCursor
        )
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        hook = getattr(settings, "DATABASE_BEFORE_CONNECT", None)
        if hook:
            _before_connect(hook)()
        connection = super().get_new_connection(conn_params)
        connection.enter_tenant_sql = self._enter_tenant_sql
        connection.prepared_max = PREPARED_MAX
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        if name is None:
            return super().create_cursor()
        # As Django's own, but for the class: outside of a transaction it must be holdable.
        cursor = self._named_cursor(
            self.connection, name, scrollable=False, withhold=self.connection.autocommit
        )
        if (
            self.timezone
            != self.connection.adapters.get_loader(TIMESTAMPTZ_OID, Format.TEXT).timezone
        ):
            register_tzloader(self.timezone, cursor)
        return cursor

    def prepared_cursor(self) -> CursorWrapper:
        """Return a cursor for statements that are sent often: see `TenantPreparedCursor`."""
        self.ensure_connection()
        wrapped: CursorWrapper = self._prepare_cursor(TenantPreparedCursor(self.connection))
        return wrapped
