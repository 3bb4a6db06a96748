"""Move what waits for a reply to the one outbox. The table's name means the view in public then.

Processes of the version before find what they know under that name, and what they accept stands in
the outbox at once. The table is locked while its rows move, which is as long as they take to read.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp, Undo
from tenants.postgresql.expressions import CurrentTenant

COLUMNS = "attempts, begun_at, error_code, last_error, due_at, failed_at, held_for, created_at"
MOVE = f"""
INSERT INTO public.tenants_job (tenant_id, kind, key, sweep_at, {COLUMNS})
SELECT tenant_id, 'reply', message_id, CASE WHEN held_for <> 'person' THEN ring_at END, {COLUMNS}
FROM orchestrator_pendingreply
"""  # noqa: S608
MOVE_BACK = f"""
WITH moved AS (
    DELETE FROM public.tenants_job
    WHERE kind = 'reply' AND tenant_id = {CurrentTenant.template} RETURNING *
)
INSERT INTO orchestrator_pendingreply (tenant_id, message_id, ring_at, {COLUMNS})
SELECT tenant_id, key, coalesce(sweep_at, now()), {COLUMNS} FROM moved
"""  # noqa: S608
TABLE = "orchestrator_pendingreply"


def text(help_text, **options):
    return models.TextField(blank=True, db_default="", default="", help_text=help_text, **options)


def moment(help_text, **options):
    return models.DateTimeField(help_text=help_text, **options)


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0009_name_sweep_at"),
        ("tenants", "0011_outbox"),
    ]

    operations = [
        # The first of these statements locks the table.
        Undo(ForceRowLevelSecurity(TABLE)),
        Undo(GrantToApp(TABLE, "INSERT", "UPDATE", "DELETE")),
        migrations.RunSQL(MOVE, MOVE_BACK),
        migrations.DeleteModel("PendingReply"),
        migrations.CreateModel(
            name="PendingReply",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "message",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="pending_reply",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How often it was begun."
                    ),
                ),
                (
                    "begun_at",
                    moment(
                        "When a worker began with it; empty when none is at work.",
                        blank=True,
                        null=True,
                    ),
                ),
                ("error_code", text("Why it failed last, for programs.")),
                ("last_error", text("Why it failed last.")),
                ("due_at", moment("From when on it may be tried (again).", db_default=Now())),
                (
                    "sweep_at",
                    moment(
                        "From when on a worker may claim it; empty while it waits for a person.",
                        blank=True,
                        db_default=Now(),
                        null=True,
                    ),
                ),
                (
                    "failed_at",
                    moment(
                        "When it was given up; empty while it is still tried.",
                        blank=True,
                        null=True,
                    ),
                ),
                (
                    "held_for",
                    text(
                        "Whom it waits for: a person, or the user's consent; empty while it is "
                        "tried.",
                        choices=[
                            ("", "nobody"),
                            ("person", "a person, who answers in this thread"),
                            ("consent", "the user's consent to a tool call"),
                        ],
                    ),
                ),
                ("created_at", moment("When it was put here.", db_default=Now())),
            ],
            options={
                "verbose_name": "pending reply",
                "verbose_name_plural": "pending replies",
                "db_table": "orchestrator_pendingreply",
                "managed": False,
            },
        ),
    ]
