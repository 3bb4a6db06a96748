"""What operators' commands do inside a tenant, in the tenant's access log."""

from typing import Any
from uuid import UUID

from django.db.models import Model

from konstruct.audit.access_log import Actor, record_access
from konstruct.audit.models import Action
from tenants.audit.changes import RowState
from tenants.audit.operator_account import operator_name


def record_command(
    command: str,
    action: Action,
    subject: str | Model,
    *,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    before: RowState | None = None,
    after: RowState | None = None,
    **detail: Any,
) -> None:
    """Write down what a command has done in the tenant that we are in: in its transaction.

    Who did it is the account on the machine that runs it. Of a row, whose it is comes from itself.
    """
    if isinstance(subject, Model):
        subject_id = subject.pk
        is_agent = subject._meta.model_name == "agent"
        agent_id = subject.pk if is_agent else getattr(subject, "agent_id", None)
        user_id = getattr(subject, "user_id", None)
        subject = str(subject._meta.verbose_name)
    record_access(
        action,
        subject,
        by=Actor.operator(operator_name()),
        subject_id=subject_id,
        agent_id=agent_id,
        user_id=user_id,
        before=before,
        after=after,
        command=command,
        **detail,
    )
