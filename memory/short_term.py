"""Public names of the short-term window; the implementation is `memory.conversations.short_term`.

The pipeline calls `get_recent_messages` and `append_message` as attributes of this module, so a
program that replaces or wraps one of them changes the window.
"""

from collections.abc import Sequence
from uuid import UUID

from memory.conf import WINDOW
from memory.conversations import short_term as windows, window_store
from memory.conversations.short_term import append_message, clear_window, get_recent_messages
from tenants.context import asynchronous

position_of = windows.position_of
aget_recent_messages = asynchronous(get_recent_messages)
aappend_message = asynchronous(append_message)
aclear_window = asynchronous(clear_window)


def append_turns(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    turns: Sequence[window_store.Turn],
    window: int = WINDOW,
    *,
    position: window_store.Position | None = None,
) -> None:
    """Append a message and its reply by `append_message`, each once, however often it is called.

    `append_message` gets role and content only. Its turns are then written in one round trip, with
    the messages' ids, names and times.

    Args:
        turns: turns of the transcript, in their order.
        window: the maximum number of turns of the window.
        position: of the last turn, if the caller has read it by `position_of`.

    Raises:
        InvalidArgument: the last turn has no message_id, or user_id or the window is invalid.
    """
    collected: list[window_store.Turn] = []
    key = windows.UserWindow.of(tenant_id, agent_id, user_id).key
    for turn in turns:
        role = windows.TurnRole(key, turn, collected)
        append_message(tenant_id, agent_id, user_id, role, turn.content, window)
    last = turns[-1] if turns else None
    windows.append_turns(
        tenant_id, agent_id, user_id, collected, window, last=last, position=position
    )


aappend_turns = asynchronous(append_turns)
