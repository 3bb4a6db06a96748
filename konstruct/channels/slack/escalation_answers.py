"""Answers to users of escalations from Slack: a button opens a form, and the form has the answer.

Slack signs both requests. A Slack user who is a member of the team (`SlackMember`) may answer with
the permission that the page of the admin needs. The access log names this member.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, gettext_lazy as _
from slack_sdk.models import blocks
from slack_sdk.models.views import View

from konstruct.channels.delivery import ChannelError
from konstruct.channels.models import SlackMember
from konstruct.channels.slack.adapter import token_of_workspace
from konstruct.channels.slack.events import native_id, pressed_button, sender_of
from konstruct.channels.slack.inbound import serving_tenant
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.handoff.escalations import (
    ANSWER_PERMISSION,
    answer_as_person,
    last_user_message,
)
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, Escalation
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError

logger = logging.getLogger(__name__)

# The id of the button, the form and its field.
ANSWER: Final = "answer_escalation"
READ_PERMISSION: Final = "memory.view_message"
# Slack's limits of a field, and of a text in a block.
MAX_ANSWER_CHARACTERS: Final = 3000
# Slack accepts a form for three seconds after the button.
TIMEOUT_SECONDS: Final = 2
UNKNOWN: Final = _(
    "You cannot answer here: your Slack account {user} belongs to no member of the team who may"
    " answer users. An admin can add it in Konstruct, under Records, Slack accounts."
)
SENT: Final = _("The answer is on its way to the user.")


def receive_answer(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """Handle a request of Slack about the answer to an escalation.

    Returns:
        The JSON of the response, which may be empty; None if the request is not about an answer.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        pressed, escalation_id = pressed_button(payload)
        if pressed == ANSWER:
            _open_form(payload, escalation_id)
            return {}
        view = payload.get("view")
        if payload.get("type") != "view_submission" or not isinstance(view, Mapping):
            return None
        return _answer(payload, view) if view.get("callback_id") == ANSWER else None


def _open_form(payload: Mapping[str, Any], value: object) -> None:
    """Open the form. A person who may not answer gets the reason instead."""
    workspace, user = _sender(payload)
    tenant, trigger = serving_tenant(workspace), payload.get("trigger_id")
    if tenant is None or not user or not isinstance(trigger, str):
        return
    with tenant_scope(tenant.id):
        member, escalation = member_of(workspace, user), _escalation(value)
        if member is None:
            form = _view(_plain(UNKNOWN.format(user=user)))
        elif escalation is None:
            form = _view(_plain(gettext("This escalation is resolved, or was erased.")))
        else:
            form = _form(escalation, member)
        try:
            call_slack(
                "views_open",
                token=token_of_workspace(workspace),
                timeout_seconds=TIMEOUT_SECONDS,
                trigger_id=trigger,
                view=form,
            )
        except ChannelError as error:  # the person can press again, or use the link
            logger.warning("The form of an answer was not opened in Slack: %s", error)


def _answer(payload: Mapping[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the user. Slack may send the form twice: its id is the answer's idempotency key."""
    workspace, user = _sender(payload)
    tenant, view_id = serving_tenant(workspace), native_id(view, "id")
    if tenant is None or not user or not view_id:
        return _error(gettext("This workspace is not connected any more."))
    with tenant_scope(tenant.id):
        member, escalation = member_of(workspace, user), _escalation(view.get("private_metadata"))
        if member is None:
            return _error(UNKNOWN.format(user=user))
        if escalation is None:
            return _error(gettext("This escalation is resolved, or was erased."))
        try:
            answer_as_person(
                escalation.pk,
                _text_of(view),
                name=member.get_username(),
                idempotency_key=f"slack/{workspace}/{view_id}",
                on_change=lambda turn: _note(
                    Action.ANSWER, member, escalation, message=str(turn.pk)
                ),
            )
        except KonstructError as error:
            return _error(str(error))
    return {"response_action": "update", "view": _view(_plain(str(SENT))).to_dict()}


def member_of(workspace: str, slack_id: str) -> Any:
    """Return the member of the team with this Slack account; None if nobody may answer with it."""
    rows = SlackMember.objects.filter(
        installation__workspace=workspace, installation__state="connected", slack_id=slack_id
    )
    account = rows.select_related("member").first()
    if (
        account is None
        or not account.member.is_active
        or not account.member.has_perm(ANSWER_PERMISSION)
    ):
        return None
    return account.member


def _sender(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the workspace and the user of a request; "" for a user of another workspace."""
    workspace, user, home = sender_of(payload)
    return workspace, user if home == workspace else ""


def _escalation(value: object) -> Escalation | None:
    try:
        key = UUID(str(value))
    except ValueError:
        return None
    return Escalation.objects.open().to_people().filter(pk=key).first()


def _note(action: Action, member: Any, escalation: Escalation, **detail: Any) -> None:
    record_access(
        action,
        "escalation",
        by=Actor.person(member),
        subject_id=escalation.pk,
        agent_id=escalation.agent_id,
        user_id=escalation.user_id,
        way="Slack",
        **detail,
    )


def _form(escalation: Escalation, member: Any) -> View:
    """Return the form, with the user's last message if the member may read conversations."""
    shown: list[blocks.Block] = []
    if member.has_perm(READ_PERMISSION):
        message = last_user_message(Thread.of(escalation))
        if message:
            shown.append(_plain(message.content))
        _note(Action.VIEW, member, escalation)
    agent = Agent.objects.filter(pk=escalation.agent_id).values_list("name", flat=True).first()
    field = blocks.InputBlock(
        block_id=ANSWER,
        label=gettext("Your answer"),
        hint=gettext("The user of %(value)s reads it under your name, %(username)s.")
        % {"value": agent or gettext("the agent"), "username": member.get_username()},
        element=blocks.PlainTextInputElement(
            action_id=ANSWER, multiline=True, max_length=MAX_ANSWER_CHARACTERS
        ),
    )
    return _view(
        *shown,
        field,
        callback_id=ANSWER,
        private_metadata=str(escalation.pk),
        submit=gettext("Send"),
    )


def _view(*shown: blocks.Block, **fields: Any) -> View:
    title, close = gettext("Answer as a person"), gettext("Close")
    return View(type="modal", title=title, close=close, blocks=shown, **fields)


def _plain(text: str) -> blocks.SectionBlock:
    """Return a block of plain text, in which Slack ignores mentions and markup."""
    shown = text if len(text) <= MAX_ANSWER_CHARACTERS else f"{text[: MAX_ANSWER_CHARACTERS - 1]}…"
    return blocks.SectionBlock(text=blocks.PlainTextObject(text=shown, emoji=False))


def _error(text: str) -> dict[str, Any]:
    return {"response_action": "errors", "errors": {ANSWER: text}}


def _text_of(view: Mapping[str, Any]) -> str:
    """Return the answer of a form that was sent; empty if it has none."""
    value: Any = view
    for name in ("state", "values", ANSWER, ANSWER, "value"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
