"""Workspaces of channels, each claimed by one tenant: where an event's tenant is looked up."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.policies import LetTenantsClaim


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_say_how_far_a_tenant_is"),
    ]

    operations = [
        migrations.CreateModel(
            name="WorkspaceClaim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("channel", models.CharField(help_text="slack …", max_length=32)),
                (
                    "workspace",
                    models.CharField(help_text="The channel's own id of it.", max_length=255),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="claims",
                        to="tenants.tenant",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("channel", "workspace"), name="workspace_has_a_tenant"
                    )
                ],
            },
        ),
        LetTenantsClaim("tenants_workspaceclaim"),
    ]
