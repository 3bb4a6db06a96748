"""The content that a channel shows of a message, by the state of the message."""

from uuid import UUID

from konstruct.channels.delivery.adapter import Button, View
from konstruct.orchestrator.replies.partial_reply import text_so_far
from konstruct.orchestrator.replies.status import Status, progress_of, sent_messages
from konstruct.orchestrator.tools.tool_calls import waiting_for
from memory.models import Message, Role
from tenants.context import required_tenant_id

PLACEHOLDER = View("_One moment…_")
APOLOGY = View("I am sorry: I could not answer this. Please try again later.")
WITH_PERSON = View("_A person will answer you here._")
TAKEN_CARE_OF = View("_A person has taken care of this._")
NO_MORE = View("…")
EMPTY = "(The answer is empty.)"
# Characters of a reply that is being written: one post has them, in any channel.
MAX_WRITTEN = 2_500
APPROVE, DENY = "approve", "deny"


def view_of(message_id: UUID, *, can_edit: bool) -> View | None:
    """Return the content to show now; None for nothing.

    A channel whose posts cannot be changed shows nothing before the final content.
    """
    said = Message.objects.filter(pk=message_id, role=Role.ASSISTANT).first()
    if said is not None:  # by a person, of their own accord
        return View(said.content.strip() or EMPTY)
    message = sent_messages().filter(pk=message_id).first()
    if message is None:
        return None
    progress = progress_of(message)
    if progress.status is Status.FAILED:
        # A message that a person has closed needs no apology.
        return APOLOGY if progress.attempts else TAKEN_CARE_OF
    if progress.status is Status.WITH_PERSON:
        return WITH_PERSON
    if progress.status is Status.AWAITING_CONSENT and (question := _question(message_id)):
        return question
    if progress.reply is not None:
        return View(_signed(progress.reply))
    if not can_edit:
        return None
    text = text_so_far(required_tenant_id(), message_id)[:MAX_WRITTEN].rstrip()
    return View(f"{text} …") if text else PLACEHOLDER


def _signed(reply: Message) -> str:
    """The reply; under its name where another agent answered than the one that is spoken to.

    All posts are one bot's, with the name of the first agent.
    """
    content = reply.content.strip() or EMPTY
    is_guests = reply.answered_by_id not in (None, reply.agent_id)
    return f"**{reply.name}:**\n{content}" if is_guests else content


def _question(message_id: UUID) -> View | None:
    """Return the question that the user is asked next, with the two answers to it."""
    calls = waiting_for(message_id)
    if not calls:
        return None
    key = str(calls[0].pk)
    return View(calls[0].question, (Button("Approve", APPROVE, key), Button("Deny", DENY, key)))
