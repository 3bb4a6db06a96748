"""message_created serves the lists by time as well: measured with a million messages."""

from django.db import migrations

from tenants.operations.indexes import RemoveIndexConcurrently


class Migration(migrations.Migration):
    # An index cannot be dropped concurrently in a transaction.
    atomic = False

    dependencies = [("memory", "0008_index_lists")]

    operations = [RemoveIndexConcurrently("Message", "message_time")]
