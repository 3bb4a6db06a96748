"""The inbox: what a channel has told, behind the tenant's policy, removed when it is taken in."""

import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("channels", "0002_name_speakers"),
    ]

    operations = [
        migrations.CreateModel(
            name="Arrival",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("channel", models.TextField(help_text="slack …")),
                (
                    "workspace",
                    models.TextField(
                        help_text="Where in the channel. One after the other is taken in."
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="What it is once, however often it is told.", max_length=255
                    ),
                ),
                ("heard", models.JSONField(help_text="What was said, by whom, and where.")),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How often it has failed."
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed last."
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="From when on it may be tried (again).",
                    ),
                ),
                (
                    "ring_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the sweeper rings for a worker (again).",
                    ),
                ),
                (
                    "failed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was given up; empty while it is still tried.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it arrived.",
                    ),
                ),
            ],
            options={
                "verbose_name": "arrival",
                "constraints": [models.UniqueConstraint(fields=("key",), name="arrival_key")],
            },
        ),
        ForceRowLevelSecurity("channels_arrival"),
        GrantToApp("channels_arrival", "INSERT", "UPDATE", "DELETE"),
    ]
