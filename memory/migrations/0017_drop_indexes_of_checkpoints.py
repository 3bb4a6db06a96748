"""The primary keys of LangGraph's tables begin with the thread, and serve what these did."""

from django.db import migrations

from tenants.operations.indexes import DropIndex

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Migration(migrations.Migration):
    dependencies = [("memory", "0016_mirror_embeddings_in_outbox")]

    operations = [DropIndex(table, f"{table}_thread_id_idx", "thread_id") for table in TABLES]
