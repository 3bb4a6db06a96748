"""Slack workspaces of a tenant: connecting them, disconnecting them, and their tokens."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Now

from konstruct.channels.exceptions import ChannelError, InstallationInvalid
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.web_api import ask
from konstruct.channels.slack.workspaces.tokens import decrypt, encrypt, encrypt_again
from tenants import transaction
from tenants.audit.changes import RowState, row_state
from tenants.context import required_tenant_id, tenant_scope
from tenants.serving.claims import claim_workspace, release_workspace

logger = logging.getLogger(__name__)

CHANNEL = "slack"

# Called in the transaction of a change, with the row as it was and as it is.
OnChange = Callable[[RowState, SlackInstallation], None]


def _nobody_records(was: RowState, installation: SlackInstallation) -> None:
    """For changes that no person makes."""


def connect(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    workspace: str,
    bot_user_id: str,
    token: str,
    by: str,
    name: str = "",
    scopes: Sequence[str] = (),
    on_change: OnChange = _nobody_records,
) -> SlackInstallation:
    """Let an agent of the tenant answer in a workspace; again changes agent and token.

    Raises:
        WorkspaceTaken: another tenant has connected it.
        InstallationInvalid: what is given cannot be Slack's.
    """
    if not workspace.isalnum() or not bot_user_id.isalnum():
        raise InstallationInvalid(
            f"{workspace!r} and {bot_user_id!r} are not ids of a Slack workspace and its bot."
        )
    if not token.isascii() or not token.isprintable() or not token.strip():
        raise InstallationInvalid("The token is empty, or holds what no token holds.")
    with tenant_scope(tenant_id), transaction.atomic():
        claim_workspace(CHANNEL, workspace)
        standing = SlackInstallation.objects.filter(workspace=workspace).first()
        was = row_state(standing)
        installation, _ = SlackInstallation.objects.update_or_create(
            workspace=workspace,
            defaults={
                "name": name,
                "agent_id": agent_id,
                "bot_user_id": bot_user_id,
                "encrypted_token": encrypt(
                    token.strip(), tenant_id=tenant_id, place=_place(workspace)
                ),
                "scopes": sorted(scopes),
                "state": SlackInstallation.State.CONNECTED,
                "installed_by": by,
                "installed_at": Now(),
                "ended_at": None,
                "ended_because": "",
            },
        )
        installation.refresh_from_db()
        on_change(was, installation)
    return installation


def check_token(token: str, *, workspace: str) -> tuple[str, str]:
    """Ask Slack whose a token is; return the workspace's name and the bot's user id.

    Raises:
        InstallationInvalid: it is another workspace's, or no bot's.
        ChannelError: Slack does not know it, or cannot be asked.
    """
    answer = ask("auth_test", token=token)
    if answer.get("team_id") != workspace:
        raise InstallationInvalid(
            f"The token is of the workspace {answer.get('team_id')}, not of {workspace}."
        )
    if not answer.get("bot_id"):
        raise InstallationInvalid("The token is a person's. A bot's begins with xoxb-.")
    return str(answer.get("team", "")), str(answer["user_id"])


def token_of(installation: SlackInstallation) -> str:
    """Return the token of a connected workspace.

    Raises TokenUnreadable.
    """
    return decrypt(
        installation.encrypted_token,
        tenant_id=required_tenant_id(),
        place=_place(installation.workspace),
    )


def disconnect(
    installation: SlackInstallation, *, by: str, on_change: OnChange = _nobody_records
) -> str:
    """Neither hear nor answer there any more, and have Slack revoke the token.

    Returns why Slack did not revoke it, if it did not: for us the token is gone in any case.
    """
    try:
        token = token_of(installation)
    except ChannelError as error:
        token, problem = "", str(error)
    with transaction.atomic():
        was = row_state(installation)
        ended = end(installation.workspace, because=f"disconnected by {by}")
        if ended:
            installation.refresh_from_db()
            on_change(was, installation)
    if not ended or not token:
        return "" if token else problem
    try:
        ask("auth_revoke", token=token)
    except ChannelError as error:
        return str(error)
    return ""


def end(workspace: str, *, because: str, before: datetime | None = None) -> bool:
    """Forget the token of a workspace, and let others connect it. Tells whether it was connected.

    Args:
        before: only what was connected before this time; what came after is another installation.
    """
    rows = SlackInstallation.objects.connected().filter(workspace=workspace)
    if before is not None:
        rows = rows.filter(installed_at__lte=before)
    with transaction.atomic():
        ended = rows.update(
            state=SlackInstallation.State.DISCONNECTED,
            encrypted_token="",
            ended_at=Now(),
            ended_because=because,
        )
        if ended:
            release_workspace(CHANNEL, workspace)
            logger.info("Slack workspace %s: %s", workspace, because)
    return bool(ended)


def encrypt_all_again() -> int:
    """Encrypt every token of the tenant that we are in with the first key; return how many.

    Raises TokenUnreadable, with nothing changed.
    """
    with transaction.atomic():
        installations = list(SlackInstallation.objects.connected().select_for_update())
        for installation in installations:
            place = _place(installation.workspace)
            installation.encrypted_token = encrypt_again(installation.encrypted_token, place=place)
            installation.save(update_fields=["encrypted_token"])
    return len(installations)


def _place(workspace: str) -> str:
    return f"{CHANNEL} {workspace}"
