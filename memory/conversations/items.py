"""What programs keep of a conversation: its title and metadata, and items.

Items are the data of a framework's runs, lossless, in the order of adding. A framework reads them
before a run, adds to them after it, and removes the newest. Messages to be remembered are in the
transcript too, and stay there when an item is removed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from memory import arguments, exceptions
from memory.models import Conversation, ConversationItem
from tenants.audit.people import hold_people


def add_items(
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    items: Iterable[tuple[Mapping[str, Any], UUID | None]],
) -> None:
    """Add items to a conversation of the current tenant, all or none.

    Args:
        items: each with the id of its message in the transcript, if it has one.

    Raises:
        InvalidArgument: an item is no JSON.
        PersonBeingErased: an erasure of the user is requested, and not done yet.
    """
    items = list(items)
    # Whoever wrote the message of an item in this transaction holds the user already.
    if not any(message_id for _, message_id in items):
        hold_people([user_id], agent_ids=[agent_id])
    ConversationItem.objects.bulk_create(
        ConversationItem(
            agent_id=agent_id,
            user_id=user_id,
            thread_id=thread_id,
            item=_text(item),
            message_id=message_id,
        )
        for item, message_id in items
    )


def lock_conversation(agent_id: UUID, user_id: str, thread_id: str) -> Conversation:
    """Return the row of a conversation, which is made if there is none, locked until the
    transaction ends.

    Raises PersonBeingErased if an erasure of the user is requested, and not done yet.
    """
    hold_people([user_id], agent_ids=[agent_id])
    conversation = {"agent_id": agent_id, "user_id": user_id, "thread_id": thread_id}
    Conversation.objects.bulk_create([Conversation(**conversation)], ignore_conflicts=True)
    return Conversation.objects.select_for_update(no_key=True).get(**conversation)


def _text(item: Mapping[str, Any]) -> str:
    """Return JSON without raw NUL characters; UTF-8 unless it contains lone surrogates."""
    try:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise exceptions.InvalidArgument(
            "an item holds a number that no float can hold, such as 1e400: send it as text"
        ) from error
    return text if arguments.is_unicode(text) else json.dumps(item)
