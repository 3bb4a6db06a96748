"""Move when an embedding is due, how often it was tried, and why it failed to its job."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables
from tenants.postgresql.expressions import IS_CURRENT_TENANT

MOVE = """
INSERT INTO public.tenants_job
    (tenant_id, kind, key, attempts, begun_at, last_error, due_at, sweep_at, created_at)
SELECT tenant_id, 'embedding', message_id, attempts, begun_at, last_error, due_at, due_at,
       created_at
FROM memory_pendingembedding
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET
    attempts = EXCLUDED.attempts, begun_at = EXCLUDED.begun_at, due_at = EXCLUDED.due_at,
    last_error = EXCLUDED.last_error
"""
MOVE_BACK = f"""
UPDATE memory_pendingembedding SET attempts = job.attempts, begun_at = job.begun_at,
    last_error = job.last_error, due_at = job.due_at
FROM public.tenants_job AS job WHERE job.kind = 'embedding' AND job.key = message_id
    AND job.{IS_CURRENT_TENANT}
"""  # noqa: S608


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0024_keep_why_replies_ended"),
        ("tenants", "0016_rename_outbox_to_job"),
    ]

    operations = [
        migrations.RunSQL(MOVE, MOVE_BACK),
        migrations.RemoveIndex("PendingEmbedding", "pending_embedding_due"),
        *(
            migrations.RemoveField("PendingEmbedding", name)
            for name in ("attempts", "begun_at", "last_error", "due_at")
        ),
        CommentOnTables(
            {
                "PendingEmbedding": "A message whose vectors and words are still to be written;"
                " removed when they are.",
            }
        ),
    ]
