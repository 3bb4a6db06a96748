"""Whether a schema is as this code wants it, told without looking into the schema."""

from functools import cache
from hashlib import blake2b
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

from tenants.exceptions import SchemaOutdated, UnknownTenant
from tenants.models import Tenant


@cache
def wanted_migrations() -> str:
    """A digest of the last migrations of all apps: what a schema that is up to date was given."""
    leaves = MigrationLoader(None).graph.leaf_nodes()
    names = ",".join(sorted(f"{app}.{name}" for app, name in leaves))
    return blake2b(names.encode(), digest_size=8).hexdigest()


def require_migrated(tenant_id: UUID | None = None) -> None:
    """Raise if the tenant, or any tenant that serves, lacks migrations of this code.

    Raises:
        UnknownTenant: there is no such tenant.
        SchemaOutdated: with the tenants, up to five by name.
    """
    tenants = Tenant.objects.serving()
    if tenant_id is not None:
        tenants = Tenant.objects.filter(id=tenant_id)
        if not tenants.exists():
            raise UnknownTenant(f"no tenant has the id {tenant_id}")
    behind = tenants.exclude(migrated_to=wanted_migrations())
    slugs = list(behind.values_list("slug", flat=True)[:6])
    if slugs:
        more = " and others" if len(slugs) > 5 else ""
        raise SchemaOutdated(
            f"tenant {', '.join(slugs[:5])}{more} lacks tables or columns of this version: run"
            " `manage.py migrate`"
        )


@cache
def number_of_tenant_tables() -> int:
    """How many tables of models a tenant's schema has, once it is all there."""
    labels = {apps.get_containing_app_config(f"{name}.models") for name in settings.TENANT_APPS}
    return sum(
        1
        for config in labels
        if config is not None
        for model in config.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
    )
