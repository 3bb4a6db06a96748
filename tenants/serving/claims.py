"""Claims of workspaces: which tenant an event of a channel belongs to."""

from uuid import UUID

from django.db import IntegrityError, transaction  # noqa: TID251 (claims are on the main server)

from tenants.context import public_scope, required_tenant_id
from tenants.exceptions import WorkspaceTaken
from tenants.models import WorkspaceClaim
from tenants.servers import MAIN


def claim_workspace(channel: str, workspace: str) -> None:
    """Let the workspace be the tenant's that we are in; again changes nothing.

    Raises:
        WorkspaceTaken: it is another tenant's.
    """
    tenant_id = required_tenant_id()
    try:
        with transaction.atomic(using=MAIN):
            WorkspaceClaim.objects.create(channel=channel, workspace=workspace, tenant_id=tenant_id)
    except IntegrityError:
        # Another tenant's claim cannot be seen from here.
        if not WorkspaceClaim.objects.filter(channel=channel, workspace=workspace).exists():
            raise WorkspaceTaken(
                f"The {channel} workspace {workspace} is connected elsewhere. It has to be "
                "disconnected there first."
            ) from None


def release_workspace(channel: str, workspace: str) -> None:
    """Let the workspace be nobody's, if it is the tenant's that we are in."""
    WorkspaceClaim.objects.filter(
        channel=channel, workspace=workspace, tenant_id=required_tenant_id()
    ).delete()


def find_claim(channel: str, workspace: str) -> WorkspaceClaim | None:
    """Return the claim of a workspace, with its tenant: one indexed query."""
    with public_scope():
        claims = WorkspaceClaim.objects.select_related("tenant")
        return claims.filter(channel=channel, workspace=workspace).first()


def tenant_of_workspace(channel: str, workspace: str) -> UUID | None:
    """Return the tenant that has claimed the workspace."""
    claim = find_claim(channel, workspace)
    return None if claim is None else claim.tenant_id
