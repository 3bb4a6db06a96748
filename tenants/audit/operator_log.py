"""Functions that write the operators' log: changes of tenants, operators and their permissions."""

import getpass
import os
from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from tenants import context, http, transaction
from tenants.audit.changes import NO_STATE, RowState, abridge, differences, row_state
from tenants.models import Domain, OperatorEvent, Tenant

Kind = OperatorEvent.ActorKind


def record_operation(
    action: str,
    subject: str | Model,
    *,
    kind: Kind,
    actor: str,
    actor_id: str = "",
    before: RowState | None = None,
    after: RowState | None = None,
    **detail: Any,
) -> OperatorEvent:
    """Write an entry into the operators' log, in the transaction of the change.

    Args:
        action: the value of an `OperatorEvent.Action`.
        subject: the row, or the kind of thing if it is no single row.
        kind: the kind of the actor.
        actor: the name of the actor.
        actor_id: the id of the user who is logged in.
        before: the row before a change or deletion. The log has the fields that differ.
        after: the row after a change or creation.
        detail: parameters; texts in them are abridged.

    Returns:
        The entry.
    """
    row = subject if isinstance(subject, Model) else None
    with context.public_scope():
        return OperatorEvent.objects.create(
            actor_kind=kind,
            actor_id=actor_id,
            actor=abridge(actor),
            action=action,
            subject=str(subject if row is None else row._meta.verbose_name_raw),
            subject_id="" if row is None else str(row.pk),
            name="" if row is None else str(row),
            address=http.current_address(),
            detail=abridge(detail) | differences(before or NO_STATE, after or NO_STATE),
        )


def record_command(command: str, action: str, subject: str | Model, **detail: Any) -> OperatorEvent:
    """Log an action of a command. The actor is the account that runs the process."""
    return record_operation(
        action, subject, kind=Kind.COMMAND, actor=operator_name(), command=command, **detail
    )


def record_site_action(
    request: HttpRequest, action: str, *, user: Any = None, username: str = "", **detail: Any
) -> None:
    """Log logins, logouts, changed passwords and refused pages of the operators' site."""
    record_person_action(
        request, action, user if action == "edit" else "admin", user=user, name=username, **detail
    )


def record_person_action(
    request: HttpRequest,
    action: str,
    subject: str | Model,
    *,
    user: Any = None,
    name: str = "",
    **detail: Any,
) -> None:
    """Log an action of the person who sent a request.

    Args:
        request: the request.
        action: the value of an `OperatorEvent.Action`.
        subject: the row, or the kind of thing.
        user: the person, if it is not the user of the request.
        name: the username that was typed, of a person who is not logged in.
        detail: further arguments of `record_operation`.
    """
    by = user if user is not None else request.user
    known = by.is_authenticated
    record_operation(
        action,
        subject,
        kind=Kind.PERSON if known else Kind.UNKNOWN,
        actor=by.get_username() if known else name,
        actor_id=str(by.pk) if known else "",
        **detail,
    )


def state_of_tenant(tenant: Tenant) -> RowState:
    """Return the values of a tenant for the log, with its host names."""
    shown = row_state(tenant)
    domains = Domain.objects.filter(tenant=tenant).order_by("domain")
    return RowState({**shown.fields, "domains": list(domains.values_list("domain", flat=True))})


def change_tenant(
    tenant: Tenant, change: Callable[[Tenant], None], record: Callable[..., object]
) -> None:
    """Change a tenant, and record its state before and after, in one transaction.

    Args:
        tenant: the tenant.
        change: a function of `tenants.schemas.provisioning`.
        record: `record_command` or `record_person_action`, with the actor and the action.
    """
    with transaction.atomic():
        before = state_of_tenant(tenant)
        change(tenant)
        record(tenant, before=before, after=state_of_tenant(tenant))


def record_deletion(tenant: Tenant) -> None:
    """Log that the owner's worker deletes a tenant after its grace period."""
    record_operation(
        "delete", tenant, kind=Kind.COMMAND, actor="owner_worker", before=state_of_tenant(tenant)
    )


def operator_name() -> str:
    """Return the name of the account that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user id without a name
        return f"uid {os.getuid()}"
