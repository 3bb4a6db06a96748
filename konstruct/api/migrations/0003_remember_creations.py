"""What POSTs with an Idempotency-Key made, behind the tenant's policy, never changed."""

import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("api", "0002_scope_and_bind_keys")]

    operations = [
        migrations.CreateModel(
            name="Creation",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "operation",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("operation", models.TextField(help_text="Method and path of the request.")),
                ("key", models.CharField(help_text="The Idempotency-Key.", max_length=255)),
                (
                    "digest",
                    models.CharField(help_text="SHA-256 of the request's body.", max_length=64),
                ),
                ("made", models.UUIDField(help_text="Id of what it made.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was made.",
                    ),
                ),
            ],
            options={"verbose_name": "creation"},
        ),
        ForceRowLevelSecurity("api_creation"),
        GrantToApp("api_creation", "INSERT"),
    ]
