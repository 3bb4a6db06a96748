"""Buttons below our posts in Slack: somebody consents to a tool call, or does not."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konstruct.channels.delivery.rendering import APPROVE, DENY
from konstruct.channels.slack.inbound.events import native_id
from konstruct.channels.slack.workspaces.installations import CHANNEL
from konstruct.orchestrator.identities.channel_identities import user_of
from konstruct.orchestrator.tools.tool_calls import decide
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.serving.claims import find_claim
from tenants.serving.rule import refuse_unless_serving

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Press:
    """That somebody has pressed one of our buttons."""

    workspace: str
    user: str
    call_id: str
    approve: bool


def read_press(payload: Mapping[str, Any]) -> Press | None:
    """Return what was pressed; None for whatever else Slack tells of."""
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if payload.get("type") != "block_actions" or not isinstance(action, Mapping):
        return None
    workspace, user = (native_id(payload.get(name), "id") for name in ("team", "user"))
    call_id, pressed = action.get("value"), action.get("action_id")
    if not (workspace and user and isinstance(call_id, str)) or pressed not in (APPROVE, DENY):
        return None
    return Press(workspace, user, call_id, approve=pressed == APPROVE)


def receive(press: Press) -> bool:
    """Decide as was pressed, if it is theirs to decide. Tells whether it was.

    What is shown follows from the decision, as after every change of a message.
    """
    claim = find_claim(CHANNEL, press.workspace)
    if claim is None or claim.tenant.state != Tenant.State.ACTIVE:
        return False
    refuse_unless_serving(claim.tenant)  # only behind, by now: Slack tells the user to try again
    with tenant_scope(claim.tenant_id, pinned=True):
        try:
            decide(
                claim.tenant_id,
                press.call_id,
                press.approve,
                by=f"{press.user} in Slack",
                user_id=user_of(CHANNEL, press.workspace, press.user),
            )
        except KonstructError as refusal:  # decided already, or another's
            logger.info("A button of %s in Slack: %s", press.user, refusal)
            return False
    return True
