"""Erasures of one agent's memory, that can be resumed; how long conversations are kept."""

import uuid

import django.contrib.postgres.functions
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("ErasureRequest", "erasure_one_open_request"),
        migrations.AlterField(
            "ErasureRequest",
            "user_id",
            models.TextField("user", help_text="Who is to be forgotten."),
        ),
        migrations.AddField(
            "ErasureRequest",
            "agent_id",
            models.UUIDField(
                "agent",
                null=True,
                blank=True,
                help_text="The one agent that forgets; none: all of them.",
            ),
        ),
        migrations.AddField(
            "ErasureRequest",
            "threads",
            ArrayField(
                models.TextField(),
                default=list,
                db_default=models.Value([], output_field=ArrayField(models.TextField())),
                blank=True,
                help_text="Sessions of graphs that are the user's, beside those that the transcript"
                " knows.",
            ),
        ),
        migrations.AddField(
            "ErasureRequest",
            "progress",
            models.JSONField(
                null=True,
                blank=True,
                editable=False,
                help_text="While it is being done: what is to be removed yet.",
            ),
        ),
        migrations.AddField(
            "ErasureRequest",
            "last_error",
            models.TextField(
                blank=True,
                default="",
                db_default="",
                help_text="Why it could not be finished yet.",
            ),
        ),
        migrations.AddConstraint(
            "ErasureRequest",
            models.UniqueConstraint(
                fields=["user_id", "agent_id"],
                condition=models.Q(done_at__isnull=True),
                nulls_distinct=False,
                name="erasure_one_open_request",
            ),
        ),
        migrations.CreateModel(
            name="RetentionRule",
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
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="Of one agent; none: of all others.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(help_text="What is older is removed every hour."),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="Since when it has been so."),
                ),
            ],
            options={
                "verbose_name": "retention rule",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["agent_id"], nulls_distinct=False, name="retention_one_rule"
                    ),
                    models.CheckConstraint(condition=models.Q(days__gt=0), name="retention_days"),
                ],
            },
        ),
        ForceRowLevelSecurity("audit_retentionrule"),
        GrantToApp("audit_retentionrule", "INSERT", "UPDATE", "DELETE"),
    ]
