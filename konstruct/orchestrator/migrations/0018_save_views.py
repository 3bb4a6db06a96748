"""Saved views of the admin's lists, and the permission to export lists."""

import uuid

import django.contrib.postgres.functions
import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0017_show_today"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
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
                ("page", models.TextField(help_text="The list, by its model: memory.message …")),
                (
                    "name",
                    models.CharField(
                        help_text="Name of the view.",
                        max_length=80,
                        validators=[django.core.validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "query",
                    models.TextField(
                        help_text="Filters and order as parameters of an address; no user's id"
                        " and no search words."
                    ),
                ),
                (
                    "owner_id",
                    models.BigIntegerField(help_text="Id of the member of the team who saved it."),
                ),
                (
                    "is_shared",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether all members of the team see it.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was saved.",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved view",
                "permissions": [("export_list", "Can export the rows of lists as CSV and JSON")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("page", "owner_id", "name"), name="saved_view_name"
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_savedview"),
        GrantToApp("orchestrator_savedview", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "SavedView": "The filters and the order of a list, for one member of the team or"
                " for all of them."
            }
        ),
    ]
