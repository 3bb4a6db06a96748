"""Move when a delivery or an arrival is due, its attempts, and why it failed to its job.

A delivery's `delivered_at` is empty from now on while a job is to show the message.
"""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.postgresql.expressions import IS_CURRENT_TENANT

COLUMNS = "attempts, begun_at, last_error, due_at, failed_at, created_at"
MOVE = f"""
INSERT INTO public.tenants_job (tenant_id, kind, key, sweep_at, {COLUMNS})
SELECT tenant_id, 'delivery', message_id, ring_at, attempts, begun_at, last_error,
       coalesce(due_at, now()), failed_at, created_at
FROM channels_delivery WHERE due_at IS NOT NULL OR failed_at IS NOT NULL
UNION ALL
SELECT tenant_id, 'arrival', lpad(to_hex(id), 32, '0')::uuid, ring_at, {COLUMNS}
FROM channels_arrival
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET
    attempts = EXCLUDED.attempts, begun_at = EXCLUDED.begun_at, due_at = EXCLUDED.due_at,
    last_error = EXCLUDED.last_error, failed_at = EXCLUDED.failed_at;
UPDATE channels_delivery SET delivered_at = NULL
WHERE delivered_at IS NOT NULL AND (due_at IS NOT NULL OR failed_at IS NOT NULL);
UPDATE channels_delivery SET delivered_at = created_at
WHERE delivered_at IS NULL AND due_at IS NULL AND failed_at IS NULL
"""  # noqa: S608
MOVE_BACK = f"""
UPDATE channels_delivery SET due_at = NULL
WHERE delivered_at IS NOT NULL;
UPDATE channels_delivery SET attempts = job.attempts, begun_at = job.begun_at,
    last_error = job.last_error, due_at = job.due_at, failed_at = job.failed_at
FROM public.tenants_job AS job WHERE job.kind = 'delivery' AND job.key = message_id
    AND job.{IS_CURRENT_TENANT};
UPDATE channels_arrival SET attempts = job.attempts, begun_at = job.begun_at,
    last_error = job.last_error, due_at = job.due_at, failed_at = job.failed_at
FROM public.tenants_job AS job
WHERE job.kind = 'arrival' AND job.key = lpad(to_hex(id), 32, '0')::uuid
    AND job.{IS_CURRENT_TENANT}
"""  # noqa: S608
MOVED = ("attempts", "begun_at", "last_error", "due_at", "sweep_at", "failed_at")


class Migration(migrations.Migration):
    dependencies = [
        ("channels", "0009_name_event_and_encrypted_token"),
        ("tenants", "0016_rename_outbox_to_job"),
    ]

    operations = [
        migrations.RunSQL(MOVE, MOVE_BACK),
        migrations.RemoveIndex("Delivery", "delivery_failed"),
        *(migrations.RemoveField("Delivery", name) for name in (*MOVED, "version")),
        *(migrations.RemoveField("Arrival", name) for name in MOVED),
        migrations.AlterField(
            "Delivery",
            "delivered_at",
            models.DateTimeField(
                blank=True,
                null=True,
                help_text="Since when the channel shows the message's present state. Empty: a job"
                " is to show it.",
            ),
        ),
        CommentOnTables(
            {
                "Arrival": "An event of a channel: stored before the channel is answered, removed"
                " when it is processed.",
                "Delivery": "A message that is shown in a channel: where it is shown, and by which"
                " posts.",
            }
        ),
    ]
