"""Slack workspaces of a tenant: connecting and disconnecting them, and their tokens."""

import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db.models.functions import Now
from django.http import HttpRequest

from konstruct.channels.delivery import ChannelError
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.agents import find_agent
from tenants import context, secret_keys, serving, transaction
from tenants.audit.changes import RowState, row_state
from tenants.models import Domain

logger = logging.getLogger(__name__)

CHANNEL = "slack"

# Records a change, in its transaction: the row before it and after it.
OnChange = Callable[[RowState, SlackInstallation], None]


class InstallationInvalid(ChannelError):
    """A workspace cannot be connected; the message has the reason."""


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
    on_change: OnChange | None = None,
) -> SlackInstallation:
    """Connect a workspace to an agent of the tenant, or change its agent and token.

    Args:
        tenant_id: the tenant.
        agent_id: the agent that answers in the workspace.
        workspace: Slack's id of the workspace.
        bot_user_id: Slack's id of the bot.
        token: the bot's token.
        by: the name of the person or command that connects it.
        name: the workspace's name in Slack.
        scopes: the scopes that Slack has granted to the bot.
        on_change: records the change.

    Raises:
        WorkspaceTaken: another tenant has connected it.
        InstallationInvalid: an id or the token is invalid.
    """
    if not workspace.isalnum() or not bot_user_id.isalnum():
        raise InstallationInvalid(
            f"{workspace!r} and {bot_user_id!r} are not ids of a Slack workspace and its bot."
        )
    if not token.isascii() or not token.isprintable() or not token.strip():
        raise InstallationInvalid("The token is empty, or has characters that no token has.")
    with context.tenant_scope(tenant_id), transaction.atomic():
        serving.claim_workspace(CHANNEL, workspace)
        before = row_state(SlackInstallation.objects.filter(workspace=workspace).first())
        installation, _ = SlackInstallation.objects.update_or_create(
            workspace=workspace,
            defaults={
                "name": name,
                "agent_id": agent_id,
                "bot_user_id": bot_user_id,
                "encrypted_token": secret_keys.encrypt(
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
        if on_change is not None:
            on_change(before, installation)
    return installation


def check_token(token: str, *, workspace: str) -> tuple[str, str]:
    """Ask Slack about a token. Return the workspace's name and the bot's user id.

    Raises:
        InstallationInvalid: it is a token of another workspace, or of a person.
        ChannelError: Slack does not know it, or cannot be reached.
    """
    answer = call_slack("auth_test", token=token)
    if answer.get("team_id") != workspace:
        raise InstallationInvalid(
            f"The token is of the workspace {answer.get('team_id')}, not of {workspace}."
        )
    if not answer.get("bot_id"):
        raise InstallationInvalid("The token is a person's. A bot's begins with xoxb-.")
    return str(answer.get("team", "")), str(answer["user_id"])


def disconnect(
    installation: SlackInstallation, *, by: str, on_change: OnChange | None = None
) -> str:
    """Disconnect a workspace, delete its token, and ask Slack to revoke the token.

    Returns:
        The reason why Slack did not revoke the token; "" if it did.
    """
    token = problem = ""
    try:
        token = token_of(installation)
    except ChannelError as error:
        problem = str(error)
    with transaction.atomic():
        before = row_state(installation)
        ended = end_installation(installation.workspace, reason=f"disconnected by {by}")
        if ended:
            installation.refresh_from_db()
            if on_change is not None:
                on_change(before, installation)
    if ended and token:
        try:
            call_slack("auth_revoke", token=token)
        except ChannelError as error:
            problem = str(error)
    return problem


def end_installation(workspace: str, *, reason: str, before: datetime | None = None) -> bool:
    """Delete the token of a workspace and release the workspace for other tenants.

    Args:
        workspace: Slack's id of the workspace.
        reason: the reason, for the admin.
        before: end only an installation from before this time.

    Returns:
        Whether the workspace was connected.
    """
    rows = SlackInstallation.objects.connected().filter(workspace=workspace)
    if before is not None:
        rows = rows.filter(installed_at__lte=before)
    with transaction.atomic():
        ended = rows.update(
            state=SlackInstallation.State.DISCONNECTED,
            encrypted_token="",
            ended_at=Now(),
            ended_because=reason,
        )
        if ended:
            serving.release_workspace(CHANNEL, workspace)
            logger.info("Slack workspace %s: %s", workspace, reason)
    return bool(ended)


def token_of(installation: SlackInstallation) -> str:
    """Return the token of a connected workspace. Raises SecretUnreadable."""
    return secret_keys.decrypt(
        installation.encrypted_token,
        tenant_id=context.required_tenant_id(),
        place=_place(installation.workspace),
    )


def _place(workspace: str) -> str:
    return f"{CHANNEL} {workspace}"


AUTHORIZE_URL: Final = "https://slack.com/oauth/v2/authorize"
# docs/slack.md explains each scope.
SCOPES: Final = (
    "app_mentions:read",
    "channels:history",
    "chat:write",
    "groups:history",
    "im:history",
    "mpim:history",
    "users:read",
)
STATE_SECONDS: Final = 600
_SALT: Final = "konstruct.channels.slack.installations"
# What a person has begun, in the session, until Slack sends the person back.
BEGUN: Final = "slack_installation"
CALLBACK: Final = "/channels/slack/oauth/"
FINISH: Final = "/admin/slack/finish/"


def is_configured() -> bool:
    """Return whether this deployment has a Slack app."""
    return bool(
        settings.SLACK_CLIENT_ID and settings.SLACK_CLIENT_SECRET and settings.SLACK_SIGNING_SECRET
    )


def begin(request: HttpRequest, *, tenant_id: UUID, agent_id: UUID) -> str:
    """Return the URL at Slack where the person of this request adds the app.

    It works once, within ten minutes. Raises InstallationInvalid.
    """
    if not is_configured():
        raise InstallationInvalid("Slack is not configured on this deployment: ask its operator.")
    named = (host for host in settings.PUBLIC_HOSTS if host[-1:].isalpha())
    host = next(named, settings.PUBLIC_HOSTS[0])
    redirect = f"{request.scheme}://{host}{_port(request)}{CALLBACK}"
    nonce = secrets.token_urlsafe(16)
    request.session[BEGUN] = {"nonce": nonce, "agent": str(agent_id), "redirect": redirect}
    query = {
        "client_id": settings.SLACK_CLIENT_ID,
        "scope": ",".join(SCOPES),
        "redirect_uri": redirect,
        "state": signing.dumps([str(tenant_id), nonce], salt=_SALT),
    }
    return f"{AUTHORIZE_URL}?{urlencode(query)}"


def read_state(text: str) -> list[str]:
    """Return the tenant and the nonce of a state that was signed within the last ten minutes.

    Raises InstallationInvalid.
    """
    try:
        return list(signing.loads(text, salt=_SALT, max_age=STATE_SECONDS))
    except signing.SignatureExpired:
        raise InstallationInvalid("This took more than ten minutes: please begin again.") from None
    except signing.BadSignature:
        raise InstallationInvalid("This address is invalid: please begin again.") from None


def admin_url(request: HttpRequest) -> str:
    """Return the URL of the tenant's admin that finishes. Raises InstallationInvalid."""
    tenant_id, _ = read_state(request.GET.get("state", ""))
    with context.public_scope():
        domain = Domain.objects.filter(tenant_id=tenant_id).order_by("-is_primary", "pk").first()
    if domain is None:
        raise InstallationInvalid("This address is invalid: please begin again.")
    query = {name: request.GET[name] for name in ("code", "state", "error") if name in request.GET}
    return f"{request.scheme}://{domain.domain}{_port(request)}{FINISH}?{urlencode(query)}"


def finish(request: HttpRequest, *, tenant_id: UUID, on_change: OnChange) -> SlackInstallation:
    """Connect the workspace to which the person of this request has added the app.

    Args:
        request: the request that Slack redirected to the tenant's admin.
        tenant_id: the tenant.
        on_change: records the change, see `connect`.

    Raises:
        InstallationInvalid: the state is another session's or used, or the person declined.
        ChannelError: Slack refuses the code, or cannot be reached.
        WorkspaceTaken: another tenant has the workspace.
        AgentNotFound: the agent is inactive.
    """
    state = read_state(request.GET.get("state", ""))
    begun = request.session.pop(BEGUN, {})
    if state != [str(tenant_id), begun.get("nonce")]:
        raise InstallationInvalid(
            "Another person has begun this, or it was done already: please begin it yourself."
        )
    if "error" in request.GET or not request.GET.get("code"):
        raise InstallationInvalid("Nothing was connected: the request was declined in Slack.")
    agent = find_agent(begun["agent"], active=True)
    answer = call_slack(
        "oauth_v2_access",
        client_id=settings.SLACK_CLIENT_ID,
        client_secret=settings.SLACK_CLIENT_SECRET,
        code=request.GET["code"],
        redirect_uri=begun["redirect"],
    )
    team: Any = answer.get("team")
    if not isinstance(team, dict) or answer.get("is_enterprise_install"):
        raise InstallationInvalid(
            "The app was added to a whole organisation. Please add it to a workspace."
        )
    return connect(
        tenant_id=tenant_id,
        agent_id=agent.id,
        workspace=str(team.get("id", "")),
        name=str(team.get("name", "")),
        bot_user_id=str(answer.get("bot_user_id", "")),
        token=str(answer.get("access_token", "")),
        scopes=str(answer.get("scope", "")).split(","),
        by=request.user.get_username(),
        on_change=on_change,
    )


def _port(request: HttpRequest) -> str:
    port = urlsplit(f"//{request.get_host()}").port
    return f":{port}" if port else ""
