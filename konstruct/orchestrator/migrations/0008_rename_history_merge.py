"""Call the merge of two histories by its name in the code; the table keeps its own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0007_comment_on_tables"),
        # Django renames the content type too, also when this is undone.
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelTable("MoveOfPast", "orchestrator_moveofpast"),
        migrations.RenameModel("MoveOfPast", "HistoryMerge"),
        migrations.AlterModelOptions("HistoryMerge", {"verbose_name": "history merge"}),
    ]
