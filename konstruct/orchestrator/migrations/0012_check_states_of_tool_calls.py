"""The wider constraint on states of tool calls holds for the rows from before too.

In a transaction of its own, which reads the table and keeps nobody from writing it.
"""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0011_ask_programs_for_results")]

    operations = [ValidateConstraint("ToolCall", "tool_call_state")]
