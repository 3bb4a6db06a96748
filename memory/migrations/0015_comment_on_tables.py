"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("memory", "0014_say_when_embeddings_were_begun")]

    operations = [
        CommentOnTables(
            {
                "ConversationEmbedding": "The vector of one piece of a message, or of a text stored directly. Append-only.",
                "IndexedMessage": "What recall weighs of a message beside its words and vectors. Append-only.",
                "MemoryAttribute": "One value of a fact's metadata, where a b-tree can find it.",
                "MemoryEntry": "A fact. An update keeps its id, and puts what was known before beside it as a version.",
                "Message": "One turn of the transcript, verbatim, written before anything else happens. Append-only.",
                "PendingEmbedding": "A message whose embeddings are still to be written: the outbox, removed when they stand.",
                "Posting": "The weight of one lexeme in one message: the lexical index. Append-only.",
                "RecallEvent": 'What was recalled for a reply, and why: the answer to "why did it say that?". Append-only.',
                "Scope": "The integer that stands for an agent and a user in the index of recall. Append-only.",
                "WindowClear": "A window that was cleared on purpose: nothing up to here comes back. Append-only.",
            }
        )
    ]
