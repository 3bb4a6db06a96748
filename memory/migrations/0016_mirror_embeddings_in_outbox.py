"""Nothing is left of this migration: a trigger that mirrored embeddings in the outbox, now gone."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memory", "0015_comment_on_tables"), ("tenants", "0012_mirror_in_outbox")]

    operations = []
