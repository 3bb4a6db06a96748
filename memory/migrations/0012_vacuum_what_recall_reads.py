"""Keep what recall reads from indexes alone readable so: Postgres must know that all see the rows.

It forgets when a table is written anew, as 0010 and 0011 did, and learns it by VACUUM, which by
default comes after a fifth of a table is new: until then each row is looked up in the table too.
"""

from typing import Final

from django.db import migrations

from tenants.operations.policies import Vacuum

TABLES: Final = ("memory_conversationembedding", "memory_indexedmessage", "memory_posting")


class Migration(migrations.Migration):
    atomic = False  # VACUUM cannot run in a transaction

    dependencies = [("memory", "0011_quantize_vectors")]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} SET (autovacuum_vacuum_insert_scale_factor = 0.05)",
                f"ALTER TABLE {table} RESET (autovacuum_vacuum_insert_scale_factor)",
            )
            for table in TABLES
        ),
        *(Vacuum(table) for table in TABLES),
    ]
