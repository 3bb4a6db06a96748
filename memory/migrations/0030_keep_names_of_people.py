"""Names of people get a table. Messages from before are read by `verify_memory --repair`."""

import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0029_exclude_corrected_facts_from_recall"),
    ]

    operations = [
        migrations.CreateModel(
            name="PersonName",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user whose messages have the name.", verbose_name="user"
                    ),
                ),
                ("name", models.TextField(help_text="The name, as the messages have it.")),
                (
                    "folded",
                    models.TextField(
                        help_text="The name without case and accents, to be searched."
                    ),
                ),
                (
                    "first_seen",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the message that brought it was sent.",
                    ),
                ),
            ],
            options={
                "verbose_name": "name of a person",
                "verbose_name_plural": "names of people",
            },
        ),
        ForceRowLevelSecurity("memory_personname"),
        GrantToApp("memory_personname", "INSERT"),
        CommentOnTables(
            {
                "PersonName": "A name that messages of a user have had, so that people are found by"
                " it. Append-only."
            }
        ),
    ]
