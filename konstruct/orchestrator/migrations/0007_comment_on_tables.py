"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0006_count_attempts_before_the_work")]

    operations = [
        CommentOnTables(
            {
                "Agent": "An AI agent of a tenant: who it is, which model speaks for it, and how it remembers.",
                "ChannelIdentity": "Somebody as a channel knows them, and the user whose memory what they say becomes.",
                "Escalation": "That a person or another agent answers in a thread, from when it was opened until it ends.",
                "MoveOfPast": "That what was said as one user is to become another's. The owner's process does it.",
                "PendingReply": "A message that waits for its reply: the outbox, removed when the reply is delivered.",
                "ToolCall": "Something that an agent asked to do while it answered a message.",
            }
        )
    ]
