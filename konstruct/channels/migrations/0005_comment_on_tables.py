"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("channels", "0004_count_attempts_before_the_work")]

    operations = [
        CommentOnTables(
            {
                "Arrival": "Something that was said, as a channel told it: the inbox, removed when it is taken in.",
                "Delivery": "That the present state of a message is to be shown in its channel: the outbox of posts.",
                "SlackInstallation": "A Slack workspace of the tenant's, the agent that answers there, and the right to speak.",
                "SlackUser": "What somebody is called in a Slack workspace, looked up now and then.",
            }
        )
    ]
