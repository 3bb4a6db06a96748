"""Indexes of the lists that people and programs read, built beside whatever goes on."""

from django.db import migrations, models

from tenants.operations.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [("memory", "0007_index_what_the_admin_lists")]

    operations = [
        AddIndexConcurrently(
            "Message", models.Index(fields=["created_at", "number"], name="message_time")
        ),
        AddIndexConcurrently(
            "Message",
            models.Index(
                fields=["user_id", "created_at", "number"],
                include=["agent_id", "tenant_id"],
                name="message_user",
            ),
        ),
        AddIndexConcurrently(
            "Message",
            models.Index(fields=["agent_id", "created_at", "number"], name="message_agent"),
        ),
        AddIndexConcurrently(
            "Message",
            models.Index(fields=["thread_id", "created_at", "number"], name="message_thread_time"),
        ),
        AddIndexConcurrently(
            "Message",
            models.Index(
                fields=["created_at", "number"],
                condition=models.Q(role="user") & ~models.Q(channel="import"),
                name="message_sent",
            ),
        ),
        AddIndexConcurrently(
            "RecallEvent",
            models.Index(fields=["user_id", "created_at", "id"], name="recall_event_user"),
        ),
        AddIndexConcurrently(
            "MemoryEntry",
            models.Index(
                fields=["user_id"],
                include=["tenant_id"],
                condition=models.Q(version_of__isnull=True),
                name="fact_user",
            ),
        ),
    ]
