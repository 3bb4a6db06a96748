"""Lists of all users, newest first, and numbers per day: a million rows are not sorted for them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0006_keep_the_prompt_of_a_reply"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="conversationembedding",
            index=models.Index(fields=["-created_at", "id"], name="embedding_newest"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["created_at"], include=("tenant_id",), name="message_created"
            ),
        ),
        migrations.AddIndex(
            model_name="recallevent",
            index=models.Index(
                fields=["-created_at", "id"],
                include=("tenant_id", "abstained"),
                name="recall_event_newest",
            ),
        ),
    ]
