"""What tells the outbox when an embedding, a delivery or an arrival is due."""

from django.db import migrations

from tenants.operations.outbox import mirror_function_sql

FUNCTIONS = {
    "embedding": mirror_function_sql("embedding", key="row.message_id", sweep="due_at"),
    "delivery": mirror_function_sql(
        "delivery",
        key="row.message_id",
        sweep="ring_at",
        waits="row.due_at IS NOT NULL AND row.failed_at IS NULL",
    ),
    # An arrival's number is read as a UUID.
    "arrival": mirror_function_sql(
        "arrival",
        key="lpad(to_hex(row.id), 32, '0')::uuid",
        sweep="ring_at",
        waits="row.failed_at IS NULL",
    ),
}


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_outbox")]

    operations = [
        migrations.RunSQL(sql, f"DROP FUNCTION public.outbox_of_{kind}()")
        for kind, sql in FUNCTIONS.items()
    ]
