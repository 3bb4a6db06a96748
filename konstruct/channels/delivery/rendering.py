"""The content that a channel shows of a message, by the state of the message."""

from uuid import UUID

from konstruct.channels.delivery.adapter import Button, View
from konstruct.orchestrator.replies.partial_reply import text_so_far
from konstruct.orchestrator.replies.status import Status, progress_of, sent_messages
from konstruct.orchestrator.tools.tool_calls import calls_awaiting_consent
from memory.models import Message, Role
from tenants.context import required_tenant_id

PLACEHOLDER = View("_One moment…_")
APOLOGY = View("I am sorry: I could not answer this. Please try again later.")
WITH_PERSON = View("_A person will answer you here._")
CLOSED = View("_A person has taken care of this._")
UNUSED_POST = View("…")
EMPTY = "(The answer is empty.)"
# Characters of a partial reply that are shown: they fit into one post of every channel.
MAX_PARTIAL_CHARACTERS = 2_500
APPROVE, DENY = "approve", "deny"


def view_of(message_id: UUID, *, can_edit: bool) -> View | None:
    """Return the content to show now; None for nothing.

    A channel whose posts cannot be changed shows nothing before the final content.
    """
    person_message = Message.objects.filter(pk=message_id, role=Role.ASSISTANT).first()
    if person_message is not None:
        return View(person_message.content.strip() or EMPTY)
    message = sent_messages().filter(pk=message_id).first()
    if message is None:
        return None
    progress = progress_of(message)
    if progress.status in (Status.FAILED, Status.CLOSED):
        # Without attempts: a person has closed the message.
        return APOLOGY if progress.attempts else CLOSED
    if progress.status is Status.WITH_PERSON:
        return WITH_PERSON
    if progress.status is Status.AWAITING_CONSENT and (question := _question(message_id)):
        return question
    if progress.reply is not None:
        return View(_with_name(progress.reply))
    if not can_edit:
        return None
    text = text_so_far(required_tenant_id(), message_id)[:MAX_PARTIAL_CHARACTERS].rstrip()
    return View(f"{text} …") if text else PLACEHOLDER


def _with_name(reply: Message) -> str:
    """Return the text of the reply; after a handover it begins with the name of the agent.

    All posts of a workspace have the name of its bot.
    """
    content = reply.content.strip() or EMPTY
    is_handed_over = reply.answered_by_id not in (None, reply.agent_id)
    return f"**{reply.name}:**\n{content}" if is_handed_over else content


def _question(message_id: UUID) -> View | None:
    """Return the question of the first tool call that waits for consent, with two buttons."""
    calls = calls_awaiting_consent(message_id)
    if not calls:
        return None
    key = str(calls[0].pk)
    return View(calls[0].question, (Button("Approve", APPROVE, key), Button("Deny", DENY, key)))
