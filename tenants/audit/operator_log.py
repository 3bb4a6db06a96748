"""Writing the operators' log: who did what with tenants, operators and their rights."""

import getpass
import os
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from tenants.audit.changes import NOTHING, RowState, abridged, differences, row_state
from tenants.context import public_scope
from tenants.http.client_address import current_address
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
    """Write down what an operator did: in the transaction of the change.

    Args:
        subject: the row, or what it was if it was no single row.
        before: the row as it was, if it was changed or removed. The log has the fields that differ.
        after: the row as it is now, if it was changed or made.
    """
    told = {name: abridged(value) for name, value in detail.items()}
    if before is not None or after is not None:
        told |= differences(before or NOTHING, after or NOTHING)
    row = subject if isinstance(subject, Model) else None
    with public_scope():
        return OperatorEvent.objects.create(
            actor_kind=kind,
            actor_id=actor_id,
            actor=abridged(actor),
            action=action,
            subject=str(subject if row is None else row._meta.verbose_name),
            subject_id="" if row is None else str(row.pk),
            name="" if row is None else str(row),
            address=current_address(),
            detail=told,
        )


def record_command(command: str, action: str, subject: str | Model, **detail: Any) -> OperatorEvent:
    """Write down what a command has done: by the account on the machine that runs it."""
    return record_operation(
        action, subject, kind=Kind.COMMAND, actor=operator_name(), command=command, **detail
    )


def record_of_site(
    request: HttpRequest, action: str, *, user: Any = None, username: str = "", **detail: Any
) -> None:
    """Write down logins, logouts, changed passwords and refusals of the operators' site."""
    record_by_person(
        request, action, user if action == "edit" else "admin", user=user, name=username, **detail
    )


def record_by_person(
    request: HttpRequest,
    action: str,
    subject: str | Model,
    *,
    user: Any = None,
    name: str = "",
    **detail: Any,
) -> None:
    """Write down what whoever sent the request has done; `name` is what was typed as theirs."""
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
    """Return what the log has of a tenant, with its host names."""
    shown = row_state(tenant)
    domains = Domain.objects.filter(tenant=tenant).order_by("domain")
    return RowState({**shown.shown, "domains": list(domains.values_list("domain", flat=True))})


def operator_name() -> str:
    """Return the account that runs this process, as the machine calls it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's number without a name
        return f"uid {os.getuid()}"
