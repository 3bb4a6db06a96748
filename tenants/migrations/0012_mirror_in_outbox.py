"""What tells the outbox when an embedding, a delivery or an arrival is due."""

from django.db import migrations

from tenants.operations.outbox import mirror_function_sql


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_outbox")]

    operations = [
        migrations.RunSQL(mirror_function_sql(kind), f"DROP FUNCTION public.outbox_of_{kind}()")
        for kind in ("embedding", "delivery", "arrival")
    ]
