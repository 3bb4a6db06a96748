"""Drop the index for LIKE that Django makes beside a primary key of text: no query uses it."""

from django.db import migrations

from tenants.operations.indexes import DropIndex


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_plain_labels")]

    operations = [
        DropIndex(
            "audit_erasedid",
            "audit_erasedid_digest_e3019336_like",
            "digest text_pattern_ops",
        )
    ]
