"""Whether a schema is as this code wants it, told without looking into the schema."""

from functools import cache
from hashlib import blake2b

from django.apps import apps
from django.conf import settings
from django.db.migrations.loader import MigrationLoader


@cache
def wanted_migrations() -> str:
    """A digest of the last migrations of all apps: what a schema that is up to date was given."""
    leaves = MigrationLoader(None).graph.leaf_nodes()
    names = ",".join(sorted(f"{app}.{name}" for app, name in leaves))
    return blake2b(names.encode(), digest_size=8).hexdigest()


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
