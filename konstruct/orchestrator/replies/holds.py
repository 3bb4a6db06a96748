"""Messages that wait for somebody, and not for a worker: holding them, and letting them go.

Each in the transaction of the caller; the channel is told in the same one, and after its commit
whoever waits for the message.
"""

from functools import partial

from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies import delivery_hooks, outbox, reply_wait
from tenants import transaction


def hold(message: KonstructMessage, held_for: HeldFor) -> bool:
    """Keep workers from the message; False if it does not wait for its reply.

    A message that the caller has just found may have been answered or erased since.
    """
    is_held = outbox.hold(message.id, held_for)
    if is_held:
        tell(message)
    return is_held


def release(message: KonstructMessage) -> bool:
    """Give a held message to the workers again; False if it is not held."""
    is_released = outbox.release(message.id)
    if is_released:
        tell(message)
    return is_released


def close(message: KonstructMessage, reason: str) -> None:
    """Give the message up, for a reason that stays: it needs no reply of its own any more."""
    outbox.close(message.id, reason)
    tell(message)


def tell(message: KonstructMessage) -> None:
    """Tell the channel that something changed, and after the commit whoever waits for it."""
    delivery_hooks.changed(message)
    transaction.on_commit(partial(reply_wait.announce, message.tenant_id, message.id))
