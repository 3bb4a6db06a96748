"""Drop the index for LIKE that Django makes beside a primary key of text: no query uses it.

Django creates it at the end of the migration that creates the table, so this is another one.
"""

from django.db import migrations

from tenants.operations.indexes import DropIndex


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [
        DropIndex(
            "audit_erasedid",
            "audit_erasedid_digest_e3019336_like",
            "digest text_pattern_ops",
        ),
    ]
