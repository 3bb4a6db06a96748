"""Retention rules: setting, changing, removing and previewing them.

A rule that people shorten takes effect after a day, and can be cancelled until then. The owner's
process applies rules (konstruct.privacy.erasure.messages).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.apps import apps
from django.utils import timezone

from konstruct.orchestrator.models import Agent
from memory.models import Message
from tenants import context, personal_data, transaction
from tenants.audit import access_log, changes
from tenants.audit.models import Action, RetentionRule
from tenants.exceptions import KonstructError

# A rule with this many days (a century) removes nothing.
MAX_DAYS = 36_500
# A shorter retention takes effect after this time.
CHANGE_DELAY = timedelta(days=1)
# A preview counts up to this number.
MAX_PREVIEWED = 10_000

_PREVIEW = """
WITH old AS MATERIALIZED (
    SELECT id, user_id FROM memory_message
    WHERE agent_id = ANY (%(agents)s) AND created_at < %(before)s LIMIT %(limit)s
)
SELECT count(*), count(DISTINCT user_id), (
    SELECT min(first.created_at) FROM unnest(%(agents)s::uuid[]) AS agent (id), LATERAL (
        SELECT created_at FROM memory_message
        WHERE agent_id = agent.id AND created_at < %(before)s ORDER BY created_at LIMIT 1
    ) AS first
)"""


class RetentionShortened(KonstructError):
    """Removing this rule would remove conversations earlier."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The numbers of rows that a rule would remove, of at most `MAX_PREVIEWED` messages."""

    before: datetime
    oldest: datetime | None
    messages: int
    users: int
    rows: dict[str, int]
    """The numbers of removed rows by kind; kinds without rows are left out."""

    @property
    def is_bounded(self) -> bool:
        """Whether there are more messages than were counted."""
        return self.messages > MAX_PREVIEWED


def set_days(rule: RetentionRule, days: int) -> None:
    """Save a new or existing rule with a number of days.

    Fewer days take effect after `CHANGE_DELAY`.
    """
    with transaction.atomic():
        rules = {other.agent_id: other.days for other in RetentionRule.objects.select_for_update()}
        # The days of the agent, or of all agents without their own rule.
        current = rules.get(rule.agent_id, rules.get(None, MAX_DAYS))
        if days >= current:
            rule.days, rule.next_days, rule.effective_at = days, None, None
        else:
            if rule.effective_at is None or rule.next_days != days:
                rule.effective_at = timezone.now() + CHANGE_DELAY
            rule.days, rule.next_days = current, days
        rule.save()


def days_without(rule: RetentionRule) -> int:
    """Return the days that would apply to the agents of a rule without it."""
    others = RetentionRule.objects.filter(agent_id=None).exclude(pk=rule.pk)
    return others.values_list("days", flat=True).first() or MAX_DAYS


def remove_rule(rule: RetentionRule) -> None:
    """Delete a rule.

    Raises:
        RetentionShortened: the rule of all other agents would remove conversations earlier.
    """
    with transaction.atomic():
        others = list(RetentionRule.objects.select_for_update().exclude(pk=rule.pk))
        for other in others:
            if rule.agent_id is not None and other.agent_id is None and other.days < rule.days:
                raise RetentionShortened(
                    f"Without this rule, the rule of all others with {other.days} days would apply"
                    f" at once. Change this rule to {other.days} days first, with a delay of a day."
                )
        rule.delete()


def apply_due_changes(now: datetime, *, by: access_log.Actor) -> None:
    """Apply pending changes that are due, and log them."""
    with transaction.atomic():
        for rule in RetentionRule.objects.select_for_update().filter(effective_at__lte=now):
            before = changes.row_state(rule)
            rule.days, rule.next_days, rule.effective_at = rule.next_days or rule.days, None, None
            rule.save()
            access_log.record_access(
                Action.EDIT,
                RetentionRule._meta.verbose_name_raw,
                by=by,
                subject_id=rule.pk,
                agent_id=rule.agent_id,
                before=before,
                after=changes.row_state(rule),
            )


def preview(rule: RetentionRule) -> Preview:
    """Count the rows that the pending change of a rule would remove."""
    days = rule.next_days or rule.days
    before = (rule.effective_at or timezone.now()) - timedelta(days=days)
    ruled = RetentionRule.objects.filter(agent_id__isnull=False).values("agent_id")
    without_rule = Agent.objects.exclude(pk__in=ruled).values_list("pk", flat=True)
    agents = [rule.agent_id] if rule.agent_id else list(without_rule)
    values = {"agents": agents, "before": before, "limit": MAX_PREVIEWED + 1}
    names = {
        model._meta.db_table: str(model._meta.verbose_name_plural) for model in apps.get_models()
    }
    columns = {
        table: data.message
        for table, data in personal_data.personal_tables().items()
        if data.message and not data.schema and table in names and table != Message._meta.db_table
    }
    counts = "".join(
        f", (SELECT count(*) FROM {table} AS kept WHERE kept.{column} IN (SELECT id FROM old))"  # noqa: S608 (declared names)
        for table, column in columns.items()
    )
    messages, users, oldest, *rows = context.fetch_all(f"{_PREVIEW}{counts} FROM old", values)[0]
    counts_by_name = {
        names[table]: count for table, count in zip(columns, rows, strict=True) if count
    }
    return Preview(before, oldest, messages, users, counts_by_name)
