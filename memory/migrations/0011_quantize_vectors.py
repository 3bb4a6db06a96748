"""The signs of a vector's numbers stand beside it, and in an index: a large scope is scanned fast.

It writes the table of vectors anew, and their HNSW index with it.
"""

import pgvector.django
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_pack_what_recall_weighs")]

    operations = [
        migrations.AddField(
            "ConversationEmbedding",
            "quantized",
            models.GeneratedField(
                expression=models.Func("embedding", function="binary_quantize"),
                output_field=pgvector.django.BitField(length=384),
                db_persist=True,
                help_text="The signs of the vector's numbers, by which many vectors are compared"
                " quickly.",
            ),
        ),
        migrations.AddIndex(
            "ConversationEmbedding",
            models.Index(
                fields=["tenant_id", "agent_id", "user_id", "embedding_model"],
                include=["id", "quantized"],
                condition=models.Q(message__isnull=False),
                name="embedding_quantized",
            ),
        ),
    ]
