"""Each change of an agent is kept as a version: its settings, author, time and note."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0022_choose_presets_of_recall"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentVersion",
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
                ("agent_id", models.UUIDField(help_text="The agent.", verbose_name="agent")),
                (
                    "number",
                    models.PositiveIntegerField(help_text="1 for the first version of the agent."),
                ),
                (
                    "settings",
                    models.JSONField(
                        help_text="All settings of the agent, by the names of its columns."
                    ),
                ),
                (
                    "changed",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="Names of the settings that differ from the version before.",
                        size=None,
                    ),
                ),
                (
                    "restores",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Number of the version that this one restores.",
                        null=True,
                    ),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What the author says of the change.",
                    ),
                ),
                (
                    "author",
                    models.TextField(
                        help_text="Kind and id of the author, such as person:7; system: for the"
                        " platform."
                    ),
                ),
                (
                    "author_name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the author at that time.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the agent changed.",
                    ),
                ),
            ],
            options={
                "verbose_name": "version of an agent",
                "verbose_name_plural": "versions of agents",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent_id", "number"), name="agent_version_number"
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_agentversion"),
        GrantToApp("orchestrator_agentversion", "INSERT"),
        CommentOnTables(
            {"AgentVersion": "The settings of an agent after a change. Never changed."}
        ),
    ]
