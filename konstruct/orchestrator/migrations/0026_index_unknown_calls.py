"""Calls of language models without an outcome are found by an index of their own."""

from django.db import migrations, models

from tenants.operations.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built concurrently

    dependencies = [("orchestrator", "0025_count_usage")]

    operations = [
        AddIndexConcurrently(
            "ModelCall",
            models.Index(
                fields=["created_at"],
                condition=models.Q(outcome=""),
                name="model_call_unknown",
            ),
        ),
    ]
