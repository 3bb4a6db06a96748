"""Handles events, buttons and forms of Slack: messages, decisions on tool calls, and answers.

`receive_event` runs while Slack waits for a response. `handle` runs in a worker. Events have the
ids of Slack's users, and a task asks Slack for their names.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone, translation
from django.utils.translation import gettext, gettext_lazy as _
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError
from slack_sdk.models import blocks
from slack_sdk.models.views import View

from konstruct.channels import delivery, inbox
from konstruct.channels.delivery import APPROVE, DENY, ChannelError, ChannelRefused
from konstruct.channels.models import SlackInstallation, SlackMember
from konstruct.channels.slack import adapter, events
from konstruct.channels.slack.installations import CHANNEL, end_installation, token_of
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator import messages, tool_calls
from konstruct.orchestrator.exceptions import IdempotencyKeyReused
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.identities.channel_identities import identity_of, user_of
from konstruct.orchestrator.models import Agent, ChannelIdentity, Escalation
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.arguments import time_zones
from memory.models import Message
from tenants import context, exceptions, redis_keys, serving, transaction
from tenants.audit import access_log, people
from tenants.audit.models import Action
from tenants.jobs import enqueue_task
from tenants.limits import quotas, rate_limit
from tenants.models import Tenant

logger = logging.getLogger(__name__)

MAX_NAME_AGE = timedelta(days=1)
# A thread gets at most one post in this time that says that a message was refused.
REFUSAL_PAUSE_SECONDS: Final = 3600


@shared_task(base=serving.TenantTask)
def learn_name(tenant_id: str, workspace: str, home: str, slack_id: str) -> None:
    """Ask Slack for a user's name and time zone, and store the name for a day. Safe to run twice.

    Errors are logged; the user's next message asks again.

    Args:
        tenant_id: the tenant.
        workspace: the workspace with the installation.
        home: the workspace of the user.
        slack_id: the user's id in Slack.
    """
    installation = SlackInstallation.objects.connected().filter(workspace=workspace).first()
    if installation is None:
        return
    user: Any = None
    try:
        user = call_slack("users_info", token=token_of(installation), user=slack_id).get("user")
    except ChannelError as error:
        logger.warning("The name of a Slack user is unknown: %s", error)
        if not isinstance(error, ChannelRefused):
            return
    found = user if isinstance(user, dict) else {}
    # There is none if the user was erased meanwhile.
    identity = ChannelIdentity.objects.filter(channel=CHANNEL, workspace=home, native_id=slack_id)
    identity.update(name=events.name_of(found.get("profile")), looked_up_at=Now())
    if found.get("tz") in time_zones():
        user_ids = list(identity.values_list("user_id", flat=True))
        people.set_time_zone(user_ids, found["tz"], is_of_channel=True)


@shared_task(base=serving.TenantTask)
def tell_refused(tenant_id: str, workspace: str, channel: str, thread_ts: str, text: str) -> None:
    """Post that a message is refused, once in a while. Safe to run twice.

    Errors are logged: the next refused message of the thread tries again after the pause.
    """
    key = redis_keys.idempotency_key(tenant_id, f"refused/{workspace}/{channel}/{thread_ts}")
    try:
        if not get_redis_connection("default").set(key, 1, ex=REFUSAL_PAUSE_SECONDS, nx=True):
            return
        call_slack(
            "chat_postMessage",
            token=adapter.token_of_workspace(workspace),
            channel=channel,
            thread_ts=thread_ts or None,
            text=text,
        )
    except (ChannelError, RedisError, ConnectionInterrupted) as error:
        logger.warning("Slack does not show that a message is refused: %s", error)


# How long a received event is remembered in the cache. Slack retries an event within an hour.
SEEN_SECONDS = 24 * 3600
# How long the cache remembers an engaged thread. Later the transcript is read.
ENGAGED_SECONDS = 7 * 24 * 3600


class EventOutcome(StrEnum):
    """The outcome of an event."""

    ACCEPTED = "accepted"
    SEEN = "seen"
    IGNORED = "ignored"
    ENDED = "ended"
    LIMITED = "limited"


def receive_event(envelope: events.Envelope) -> tuple[EventOutcome, float]:
    """Store a message event in the inbox, or end an installation.

    Returns:
        The outcome; for LIMITED also the seconds until Slack may send the event again.

    Raises what `refuse_unless_serving` raises: then Slack sends the event again.
    """
    tenant = serving_tenant(envelope.workspace)
    if tenant is None:
        return EventOutcome.IGNORED, 0.0
    seen_key = redis_keys.idempotency_key(tenant.id, envelope.event_id)
    with context.tenant_scope(tenant.id):
        # Saves a statement. The inbox and the transcript store a repeated message once anyway.
        if _is_cached(seen_key):
            return EventOutcome.SEEN, 0.0
        outcome, retry_after = _receive_event(tenant, envelope)
        if outcome is not EventOutcome.LIMITED:
            _cache(seen_key, SEEN_SECONDS)
        return outcome, retry_after


def serving_tenant(workspace: str) -> Tenant | None:
    """Return the active tenant that has connected the workspace; None if there is none.

    Raises what `refuse_unless_serving` raises.
    """
    claim = serving.find_claim(CHANNEL, workspace)
    if claim is None:
        logger.warning("An event of the unknown Slack workspace %s is ignored", workspace)
        return None
    if claim.tenant.state in (Tenant.State.SUSPENDED, Tenant.State.PROVISIONING):
        logger.warning(
            "An event of Slack workspace %s is ignored: tenant %s is %s",
            *(workspace, claim.tenant.slug, claim.tenant.state),
        )
        return None
    serving.refuse_unless_serving(claim.tenant)  # then Slack sends the event again
    return claim.tenant


def _receive_event(tenant: Tenant, envelope: events.Envelope) -> tuple[EventOutcome, float]:
    if envelope.event.get("type") in ("app_uninstalled", "tokens_revoked"):
        is_ended = _end_installation(envelope)
        return EventOutcome.ENDED if is_ended else EventOutcome.IGNORED, 0.0
    bot = envelope.bot or _bot_of(envelope.workspace)
    event = events.read_message(envelope, bot=bot, now=timezone.now())
    # A new thread cannot be engaged.
    if event is None or (event.kind is events.AddressedBy.OVERHEARD and event.begins_thread):
        return EventOutcome.IGNORED, 0.0
    limit = rate_limit.take_from(tenant.id, quotas.request_buckets(tenant.quotas, CHANNEL))
    if not limit.allowed:
        return EventOutcome.LIMITED, limit.retry_after
    is_new = inbox.enqueue(
        channel=CHANNEL, workspace=event.workspace, key=event.key, event=asdict(event)
    )
    return EventOutcome.ACCEPTED if is_new else EventOutcome.SEEN, 0.0


def _bot_of(workspace: str) -> str:
    """Return Slack's id of the bot, which Slack may leave out of an event."""
    bots = SlackInstallation.objects.connected().filter(workspace=workspace)
    return bots.values_list("bot_user_id", flat=True).first() or ""


def _end_installation(envelope: events.Envelope) -> bool:
    """End the installation if its token is revoked."""
    if envelope.event["type"] == "tokens_revoked":
        tokens = envelope.event.get("tokens")
        bots = tokens.get("bot") if isinstance(tokens, dict) else None
        if not isinstance(bots, list) or _bot_of(envelope.workspace) not in bots:
            return False
    reason = f"Slack says: {envelope.event['type']}"
    return end_installation(envelope.workspace, reason=reason, before=envelope.at)


def receive_interaction(payload: Mapping[str, Any]) -> bool:
    """Decide a tool call if a user has pressed one of its buttons; return whether it was decided.

    The decision changes the message, so that its posts are updated.
    """
    pressed, call_id = events.pressed_button(payload)
    workspace, user, home = events.sender_of(payload)
    tenant = serving_tenant(workspace) if pressed in (APPROVE, DENY) and user else None
    if tenant is None:
        return False
    with context.tenant_scope(tenant.id):
        try:
            tool_calls.decide(
                tenant.id,
                call_id,
                pressed == APPROVE,
                by=f"{user} in Slack",
                user_id=user_of(CHANNEL, home, user),
            )
        except exceptions.KonstructError as refusal:  # it is decided already, or another user's
            logger.info("A button in Slack: %s", refusal)
            return False
    return True


def handle(tenant_id: UUID, stored: Mapping[str, Any]) -> None:
    """Accept a message of the inbox if it is for the agent. Call it in a transaction."""
    event = events.MessageEvent.from_json(stored)
    installation = (
        SlackInstallation.objects.connected()
        .select_related("agent")
        .filter(workspace=event.workspace)
        .first()
    )
    if installation is None or event.user == installation.bot_user_id:
        return
    if event.kind is events.AddressedBy.OVERHEARD and not _is_engaged(tenant_id, event.thread_id):
        return
    if not installation.agent.is_active:
        logger.warning("Agent %s is inactive: a Slack message is ignored", installation.agent_id)
        return
    _accept(tenant_id, event, installation)
    key = redis_keys.engaged_thread_key(tenant_id, event.thread_id)
    transaction.on_commit(partial(_cache, key, ENGAGED_SECONDS))


def _accept(tenant_id: UUID, event: events.MessageEvent, installation: SlackInstallation) -> None:
    """Accept the message, and put its delivery into the queue."""
    identity = identity_of(CHANNEL, event.home, event.user, event.name)
    mentioned = ChannelIdentity.objects.filter(
        channel=CHANNEL,
        workspace__in={event.workspace, event.home},
        native_id__in=events.mentioned_users(event.text),
    ).values_list("workspace", "native_id", "name")
    # Of two users with the same id, a mention is of the member of this workspace.
    members_last = sorted(mentioned, key=lambda row: row[0] == event.workspace)
    names = {slack_id: name for _, slack_id, name in members_last}
    name = event.name or identity.name
    incoming = Incoming(
        agent_id=installation.agent_id,
        user_id=identity.user_id,
        thread_id=event.thread_id,
        channel=CHANNEL,
        content=_content(event, installation, names),
        name=name,
        idempotency_key=event.key,
        created_at=datetime.fromisoformat(event.at),
    )
    address = {
        "workspace": event.workspace,
        "channel": event.channel,
        "thread_ts": event.thread_ts,
        "ts": event.ts,
    }
    try:
        with transaction.atomic():
            message, created = accept(incoming, tenant_id=tenant_id)
    except IdempotencyKeyReused:
        return  # another event of the same message, with another name or file
    except quotas.QuotaExceeded as refusal:
        logger.warning("A message in Slack is refused: %s", refusal)
        where = (str(tenant_id), event.workspace, event.channel, event.thread_ts or "")
        transaction.on_commit(partial(enqueue_task, tell_refused, *where, refusal.for_people))
        return
    if not created:
        return
    delivery.enqueue(message, channel=CHANNEL, address=address)
    looked_up_at = identity.looked_up_at
    if looked_up_at is None or timezone.now() - looked_up_at > MAX_NAME_AGE:
        call = (str(tenant_id), event.workspace, event.home, event.user)
        transaction.on_commit(partial(enqueue_task, learn_name, *call))


def _content(
    event: events.MessageEvent, installation: SlackInstallation, names: Mapping[str, str]
) -> str:
    """Return the text and the names of files; for a mention alone, the agent's name."""
    agent = installation.agent.name
    text = events.plain_text(event.text, bot=installation.bot_user_id, agent=agent, names=names)
    content = "\n".join(filter(None, (text, messages.attachment_note(event.files)))) or f"@{agent}"
    limit = settings.MAX_MESSAGE_CHARACTERS
    return (
        content
        if len(content) <= limit
        else content[: limit - len(events.TRUNCATED)] + events.TRUNCATED
    )


def _is_engaged(tenant_id: UUID, thread_id: str) -> bool:
    """Return whether the agent has been addressed in the thread before."""
    key = redis_keys.engaged_thread_key(tenant_id, thread_id)
    if _is_cached(key):
        return True
    if not Message.objects.filter(thread_id=thread_id, channel=CHANNEL).exists():
        return False
    _cache(key, ENGAGED_SECONDS)
    return True


def _is_cached(key: str) -> bool:
    try:
        return bool(get_redis_connection("default").exists(key))
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("The cache cannot be read: %s", error)
        return False


def _cache(key: str, seconds: int) -> None:
    try:
        get_redis_connection("default").set(key, 1, ex=seconds)
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("The cache cannot be written: %s", error)


# --- Answers to escalations -----------------------------------------------------------------------

# A button opens a form, and the form has the answer. Slack signs both requests. A Slack user who is
# a member of the team (`SlackMember`) may answer with the permission that the page of the admin
# needs. The access log names this member.

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
        pressed, escalation_id = events.pressed_button(payload)
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
    with context.tenant_scope(tenant.id):
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
                token=adapter.token_of_workspace(workspace),
                timeout_seconds=TIMEOUT_SECONDS,
                trigger_id=trigger,
                view=form,
            )
        except ChannelError as error:  # the person can press again, or use the link
            logger.warning("The form of an answer was not opened in Slack: %s", error)


def _answer(payload: Mapping[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the user. Slack may send the form twice: its id is the answer's idempotency key."""
    workspace, user = _sender(payload)
    tenant, view_id = serving_tenant(workspace), events.native_id(view, "id")
    if tenant is None or not user or not view_id:
        return _error(gettext("This workspace is not connected any more."))
    with context.tenant_scope(tenant.id):
        member, escalation = member_of(workspace, user), _escalation(view.get("private_metadata"))
        if member is None:
            return _error(UNKNOWN.format(user=user))
        if escalation is None:
            return _error(gettext("This escalation is resolved, or was erased."))
        try:
            escalations.answer_as_person(
                escalation.pk,
                _text_of(view),
                name=member.get_username(),
                idempotency_key=f"slack/{workspace}/{view_id}",
                on_change=lambda turn: _note(
                    Action.ANSWER, member, escalation, message=str(turn.pk)
                ),
            )
        except exceptions.KonstructError as error:
            return _error(str(error))
    return {"response_action": "update", "view": _view(_plain(str(SENT))).to_dict()}


def member_of(workspace: str, slack_id: str) -> Any:
    """Return the member of the team with this Slack account; None if nobody may answer with it."""
    rows = SlackMember.objects.filter(
        installation__workspace=workspace, installation__state="connected", slack_id=slack_id
    )
    for account in rows.select_related("member"):
        if account.member.has_perm(escalations.ANSWER_PERMISSION):  # false for inactive ones
            return account.member
    return None


def _sender(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the workspace and the user of a request; "" for a user of another workspace."""
    workspace, user, home = events.sender_of(payload)
    return workspace, user if home == workspace else ""


def _escalation(value: object) -> Escalation | None:
    try:
        key = UUID(str(value))
    except ValueError:
        return None
    return Escalation.objects.open().to_people().filter(pk=key).first()


def _note(action: Action, member: Any, escalation: Escalation, **detail: Any) -> None:
    access_log.record_access(
        action,
        "escalation",
        by=access_log.Actor.person(member),
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
        message = escalations.last_user_message(messages.Thread.of(escalation))
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
