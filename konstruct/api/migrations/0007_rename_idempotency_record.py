"""Call what an Idempotency-Key made by its name in the code; the table keeps its own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0006_comment_on_tables"),
        # Django renames the content type too, also when this is undone.
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelTable("Creation", "api_creation"),
        migrations.RenameModel("Creation", "IdempotencyRecord"),
        migrations.AlterModelOptions("IdempotencyRecord", {"verbose_name": "idempotency record"}),
    ]
