"""A pending reply says why it failed in a code for programs and a sentence for people.

What the language model's server said, and where it is, was a part of the sentence until now. It is
taken out of what is kept: of pending replies, and of escalations that were opened for one.
"""

from django.db import migrations, models

FORGET = """
UPDATE orchestrator_pendingreply
SET error_code = 'llm_failed', last_error = 'The language model gave no answer that can be used.'
WHERE last_error LIKE 'The language model%' OR last_error LIKE 'LLM_POOL_URL=%';
UPDATE orchestrator_pendingreply
SET error_code = 'internal_error', last_error = 'An error inside Konstruct. The operators'' log says more.'
WHERE error_code = '' AND last_error ~ '^[A-Za-z]+: ';
UPDATE orchestrator_escalation
SET reason = 'The agent could not answer: The language model gave no answer that can be used.'
WHERE reason LIKE 'The agent could not answer: The language model%'
   OR reason LIKE 'The agent could not answer: LLM_POOL_URL=%'
"""  # noqa: E501


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0002_hold_escalate_consent_identify")]

    operations = [
        migrations.AddField(
            "PendingReply",
            "error_code",
            models.TextField(
                blank=True, db_default="", default="", help_text="Why it failed last, for programs."
            ),
        ),
        migrations.RunSQL(FORGET, migrations.RunSQL.noop),
    ]
