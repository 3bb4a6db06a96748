"""Let embeddings that wait stand in the outbox, where workers find them."""

from django.db import migrations

from tenants.operations.outbox import MirrorInOutbox


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0015_comment_on_tables"),
        ("tenants", "0012_mirror_in_outbox"),
    ]

    operations = [
        MirrorInOutbox("embedding"),
    ]
