"""One outbox of all tenants, and the view of it in which the code finds replies.

The view has the name of the table that each tenant had for its replies: once a tenant's table is
gone (orchestrator.0010), its name means the view. So processes of the version before go on reading
and writing what waits for a reply; `ring_at` is the name that they know `sweep_at` by.
"""

from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import LetWorkersClaim
from tenants.postgresql.expressions import IS_CURRENT_TENANT, CurrentTenant

REPLIES = f"""
CREATE VIEW public.orchestrator_pendingreply WITH (security_invoker = true) AS
SELECT tenant_id, key AS message_id, kind, attempts, begun_at, error_code, last_error, due_at,
       sweep_at, sweep_at AS ring_at, failed_at, held_for, created_at
FROM public.tenants_outboxentry WHERE {IS_CURRENT_TENANT} AND kind = 'reply';
GRANT INSERT, UPDATE, DELETE ON public.orchestrator_pendingreply TO konstruct_app;
ALTER VIEW public.orchestrator_pendingreply ALTER COLUMN kind SET DEFAULT 'reply';
COMMENT ON VIEW public.orchestrator_pendingreply IS
    'Messages of the current tenant that wait for their reply: entries of the outbox.'
"""  # noqa: S608


def moment(text, **options):
    return models.DateTimeField(help_text=text, **options)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_grant_public_tables_by_column")]

    operations = [
        migrations.CreateModel(
            name="OutboxEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "kind",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), help_text="Whose work it is."),
                ),
                ("kind", models.TextField(help_text="What is to be done: reply …")),
                (
                    "key",
                    models.UUIDField(help_text="With what: the id of a message, for most kinds."),
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
                (
                    "error_code",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it failed last, for programs.",
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed last."
                    ),
                ),
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
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Whom it waits for, such as a person; empty while it is tried.",
                    ),
                ),
                ("created_at", moment("When it was put here.", db_default=Now())),
            ],
            options={
                "verbose_name": "outbox entry",
                "verbose_name_plural": "outbox",
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("failed_at__isnull", True), ("sweep_at__isnull", False)
                        ),
                        fields=["kind", "tenant_id", "sweep_at"],
                        name="outbox_turns",
                    )
                ],
            },
        ),
        LetWorkersClaim("tenants_outboxentry"),
        CommentOnTables(
            {
                "OutboxEntry": "Work of a tenant that waits for a worker: the one outbox, of all "
                "tenants and kinds of work."
            }
        ),
        migrations.RunSQL(REPLIES, "DROP VIEW public.orchestrator_pendingreply"),
    ]
