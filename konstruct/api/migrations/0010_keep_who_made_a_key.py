"""Keep which person made an API key: a person does not confirm facts that their own key
proposed."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0009_describe_scope_erase"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="created_by",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Id of the person who made it. Empty: an operator's command made it.",
            ),
        ),
        CommentOnTables({"ApiKey": "A program's access to its tenant's API."}),
    ]
