"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_record_what_operators_do")]

    operations = [
        CommentOnTables(
            {
                "Domain": "A host name that serves a tenant.",
                "OperatorEvent": "Who did what with tenants and operators, when and from where. Append-only.",
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by all others.",
                "WorkspaceClaim": "That a workspace of a channel (a Slack team) is a tenant's. It can be one tenant's alone.",
            }
        )
    ]
