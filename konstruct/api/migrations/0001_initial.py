"""API keys, behind the tenant's policy. They are revoked, not deleted: who had access stays."""

import uuid

import django.contrib.postgres.functions
import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Which program uses it, for people.",
                        max_length=120,
                        validators=[django.core.validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        editable=False,
                        help_text="Part of the key by which it is found.",
                        max_length=12,
                    ),
                ),
                (
                    "secret_digest",
                    models.CharField(
                        editable=False, help_text="SHA-256 of the key's secret.", max_length=64
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="When it was made.",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="From then on it opens nothing. Empty: it does not expire.",
                        null=True,
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(
                        blank=True, editable=False, help_text="When it was revoked.", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "ordering": ["-created_at"],
                "constraints": [models.UniqueConstraint(fields=("prefix",), name="api_key_prefix")],
            },
        ),
        ForceRowLevelSecurity("api_apikey"),
        GrantToApp("api_apikey", "INSERT", "UPDATE"),
    ]
