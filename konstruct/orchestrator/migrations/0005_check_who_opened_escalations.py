"""The wider constraint on who opened an escalation holds for the rows from before too.

In a transaction of its own, which reads the table and keeps nobody from writing it.
"""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0004_hand_threads_to_agents")]

    operations = [ValidateConstraint("Escalation", "escalation_opened_by")]
