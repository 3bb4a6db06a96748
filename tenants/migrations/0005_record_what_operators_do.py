"""The operators' log: unseen by tenants, for adding rows only."""

import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.operations.policies import AppendOnly, HideFromTenants


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0004_claim_workspaces"),
    ]

    operations = [
        migrations.CreateModel(
            name="OperatorEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), help_text="When."
                    ),
                ),
                (
                    "actor_kind",
                    models.TextField(
                        choices=[
                            ("person", "operator in the admin"),
                            ("command", "operator's command"),
                            ("unknown", "nobody who is known"),
                        ],
                        help_text="Who, of which kind.",
                    ),
                ),
                (
                    "actor_id",
                    models.TextField(
                        blank=True, default="", help_text="Id of the operator who was logged in."
                    ),
                ),
                (
                    "actor",
                    models.TextField(
                        help_text="Their name at that time; of a command, the account that ran it."
                    ),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("list", "listed"),
                            ("view", "looked at"),
                            ("search", "searched"),
                            ("create", "created"),
                            ("edit", "edited"),
                            ("suspend", "suspended"),
                            ("resume", "resumed"),
                            ("delete", "deleted"),
                            ("login", "logged in"),
                            ("logout", "logged out"),
                            ("login_failed", "failed to log in"),
                            ("refuse", "was refused"),
                        ],
                        help_text="What they did.",
                    ),
                ),
                ("subject", models.TextField(help_text="With what: tenant, user, group …")),
                (
                    "subject_id",
                    models.TextField(blank=True, default="", help_text="Which one, if it was one."),
                ),
                (
                    "name",
                    models.TextField(blank=True, default="", help_text="What that was called."),
                ),
                (
                    "address",
                    models.GenericIPAddressField(
                        blank=True, help_text="Where the request came from.", null=True
                    ),
                ),
                (
                    "detail",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="What was asked for; of a change, before and after.",
                    ),
                ),
            ],
            options={
                "verbose_name": "operation",
                "verbose_name_plural": "operators' log",
            },
        ),
        HideFromTenants("tenants_operatorevent"),
        AppendOnly("tenants_operatorevent"),
    ]
