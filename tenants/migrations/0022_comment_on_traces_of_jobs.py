"""Comment on the columns of a job that keep its trace."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    """See the module."""

    dependencies = [("tenants", "0021_restore_tenants")]

    operations = [
        CommentOnTables(
            {
                "Job": "Work of a tenant that waits for a worker. One table for all tenants and"
                " kinds of work."
            }
        )
    ]
