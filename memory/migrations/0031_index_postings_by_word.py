"""Index the words of all scopes, by which a tenant's messages are searched."""

from django.db import migrations, models

from tenants.operations.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built concurrently

    dependencies = [("memory", "0030_keep_names_of_people")]

    operations = [
        AddIndexConcurrently("Posting", models.Index(fields=["h"], name="posting_word")),
    ]
