"""Time zones in which members of the team read times."""

import uuid

import django.contrib.postgres.functions
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0018_save_views"),
    ]

    operations = [
        migrations.CreateModel(
            name="TeamTimeZone",
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
                (
                    "member_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Id of the member of the team. Empty: of all others.",
                        null=True,
                    ),
                ),
                ("name", models.TextField(help_text="The time zone, such as Europe/Berlin.")),
            ],
            options={
                "verbose_name": "time zone",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("member_id",), name="team_time_zone_member", nulls_distinct=False
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_teamtimezone"),
        GrantToApp("orchestrator_teamtimezone", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "TeamTimeZone": "The time zone of a member of the team, or of all who have chosen"
                " none."
            }
        ),
    ]
