"""Items of a conversation: what a framework keeps of its runs, lossless, in the order of adding.

A framework reads them before a run, adds to them after it, and takes back the newest. What of them
is to be remembered is in the transcript as well, and stays there when an item is taken back.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from memory.arguments import is_unicode
from memory.exceptions import InvalidArgument
from memory.models import ConversationItem


def add_items(
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    items: Iterable[tuple[Mapping[str, Any], UUID | None]],
) -> None:
    """Add items to a conversation, all or none, in the tenant that we are in.

    Args:
        items: each with the id of the message in the transcript that it says, if there is one.

    Raises:
        InvalidArgument: an item is no JSON.
    """
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


def _text(item: Mapping[str, Any]) -> str:
    """JSON without raw NUL characters, which is in UTF-8 unless there are halves of pairs."""
    try:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise InvalidArgument(
            "an item holds a number that no float can hold, such as 1e400: send it as text"
        ) from error
    return text if is_unicode(text) else json.dumps(item)
