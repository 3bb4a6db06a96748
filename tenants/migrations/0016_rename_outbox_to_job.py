"""Rename the table of the outbox to `tenants_job`, and drop the triggers that wrote to it.

The table keeps its policies, grants and rows. Dropping a function drops the triggers of all tenants
that call it, and needs a lock on their tables for a moment.
"""

from django.db import migrations

from tenants.operations.comments import CommentOnTables

DROP = ";".join(
    f"DROP FUNCTION IF EXISTS public.outbox_of_{kind}() CASCADE"
    for kind in ("embedding", "delivery", "arrival")
)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0015_hold_tenants_that_are_moved")]

    operations = [
        migrations.RunSQL(DROP, migrations.RunSQL.noop),
        migrations.RenameModel("OutboxEntry", "Job"),
        migrations.AlterModelOptions("Job", options={"verbose_name": "job"}),
        migrations.RenameIndex("Job", old_name="outbox_turns", new_name="job_turns"),
        migrations.RunSQL(
            "ALTER INDEX public.tenants_outboxentry_pkey RENAME TO tenants_job_pkey",
            "ALTER INDEX public.tenants_job_pkey RENAME TO tenants_outboxentry_pkey",
        ),
        CommentOnTables(
            {
                "Job": "Work of a tenant that waits for a worker. One table for all tenants and"
                " kinds of work.",
            }
        ),
    ]
