"""Slack's OAuth: a person adds the app to a workspace, and the workspace is connected.

    tenant's admin -> Slack -> public host -> tenant's admin

Slack redirects to one URL for all tenants, on a public host. The signed state names the tenant to
redirect to. The tenant's admin checks that the same person began, and that the state is unused.
"""

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.channels.exceptions import InstallationInvalid
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.installations import OnChange, connect
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.agents import find_agent
from tenants.context import public_scope
from tenants.models import Domain
from tenants.redis_keys import install_state_key

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
_SALT: Final = "konstruct.channels.slack.oauth"
CALLBACK: Final = "/channels/slack/oauth/"
FINISH: Final = "/admin/slack/finish/"


@dataclass(frozen=True, slots=True)
class State:
    """The person who connects a workspace, the agent, and the redirect URL."""

    tenant: str
    agent: str
    user: str
    redirect: str
    nonce: str


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
        raise InstallationInvalid(
            "Slack is not configured here. An operator sets SLACK_CLIENT_ID, SLACK_CLIENT_SECRET "
            "and SLACK_SIGNING_SECRET."
        )
    state = State(
        tenant=str(tenant_id),
        agent=str(agent_id),
        user=str(request.user.pk),
        redirect=_callback_url(request),
        nonce=secrets.token_urlsafe(16),
    )
    try:
        client = get_redis_connection("default")
        client.set(install_state_key(tenant_id, state.nonce), 1, ex=STATE_SECONDS)
    except (RedisError, ConnectionInterrupted) as error:
        raise InstallationInvalid("This cannot be begun now: the cache is down.") from error
    query = {
        "client_id": settings.SLACK_CLIENT_ID,
        "scope": ",".join(SCOPES),
        "redirect_uri": state.redirect,
        "state": signing.dumps(asdict(state), salt=_SALT),
    }
    return f"{AUTHORIZE_URL}?{urlencode(query)}"


def read_state(text: str) -> State:
    """Return a state that was signed within the last ten minutes. Raises InstallationInvalid."""
    try:
        return State(**signing.loads(text, salt=_SALT, max_age=STATE_SECONDS))
    except signing.SignatureExpired:
        raise InstallationInvalid("This took more than ten minutes: please begin again.") from None
    except (signing.BadSignature, TypeError):
        raise InstallationInvalid("This address is invalid: please begin again.") from None


def admin_url(request: HttpRequest) -> str:
    """Return the URL of the tenant's admin that finishes. Raises InstallationInvalid."""
    state = read_state(request.GET.get("state", ""))
    with public_scope():
        domain = Domain.objects.filter(tenant_id=state.tenant).order_by("-is_primary", "pk").first()
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
        InstallationInvalid: the state is another person's or used, or the person declined.
        ChannelError: Slack refuses the code, or cannot be reached.
        WorkspaceTaken: another tenant has the workspace.
        AgentNotFound: the agent is inactive.
    """
    state = read_state(request.GET.get("state", ""))
    if (state.tenant, state.user) != (str(tenant_id), str(request.user.pk)):
        raise InstallationInvalid("Another person has begun this: please begin it yourself.")
    try:
        client = get_redis_connection("default")
        is_unused = bool(client.delete(install_state_key(tenant_id, state.nonce)))
    except (RedisError, ConnectionInterrupted) as error:
        raise InstallationInvalid("This cannot be finished now: the cache is down.") from error
    if not is_unused:
        raise InstallationInvalid("This was done already, or took too long: please begin again.")
    if "error" in request.GET or not request.GET.get("code"):
        raise InstallationInvalid("Nothing was connected: the request was declined in Slack.")
    agent = find_agent(state.agent, active=True)
    answer = call_slack(
        "oauth_v2_access",
        client_id=settings.SLACK_CLIENT_ID,
        client_secret=settings.SLACK_CLIENT_SECRET,
        code=request.GET["code"],
        redirect_uri=state.redirect,
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


def _callback_url(request: HttpRequest) -> str:
    """Return the redirect URL of the Slack app."""
    named = (host for host in settings.PUBLIC_HOSTS if host[-1:].isalpha())
    host = next(named, settings.PUBLIC_HOSTS[0])
    return f"{request.scheme}://{host}{_port(request)}{CALLBACK}"


def _port(request: HttpRequest) -> str:
    host = request.get_host()
    port = host.rpartition(":")[2]
    return f":{port}" if port != host and port.isdigit() else ""
