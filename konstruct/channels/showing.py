"""What a channel shows of a message, by how far the message is."""

from uuid import UUID

from konstruct.channels.adapter import View
from konstruct.orchestrator.status import Status, progress_of, sent_messages
from memory.models import Message, Role

PLACEHOLDER = View("_One moment…_")
APOLOGY = View("I am sorry: I could not answer this. Please try again later.")
EMPTY = "(The answer is empty.)"


def view_of(message_id: UUID, *, can_edit: bool) -> View | None:
    """Return what is to be shown now; None for nothing.

    A channel whose posts cannot be changed shows nothing until there is something to stay.
    """
    said = Message.objects.filter(pk=message_id, role=Role.ASSISTANT).first()
    if said is not None:  # by a person, of their own accord
        return View(said.content.strip() or EMPTY)
    message = sent_messages().filter(pk=message_id).first()
    if message is None:
        return None
    progress = progress_of(message)
    if progress.status is Status.FAILED:
        return APOLOGY
    if progress.reply is not None:
        return View(progress.reply.content.strip() or EMPTY)
    return PLACEHOLDER if can_edit else None
