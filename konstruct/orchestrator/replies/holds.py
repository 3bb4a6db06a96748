"""Messages that wait for somebody, and not for a worker: holding them, and letting them go.

Each in the transaction of the caller; the channel is told in the same one, and after its commit
whoever waits for the message.
"""

from functools import partial

from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies import delivery_hooks, outbox, reply_wait
from tenants import transaction


def hold(message: KonstructMessage, held_for: HeldFor) -> None:
    """Let the message wait for somebody. Raises NotHeld if it does not wait for its reply."""
    outbox.hold(message.id, held_for)
    tell(message)


def release(message: KonstructMessage) -> None:
    """Let the message be answered after all. Raises NotHeld if it is not held."""
    outbox.release(message.id)
    tell(message)


def close(message: KonstructMessage, reason: str) -> None:
    """Give the message up, for a reason that stays: it needs no reply of its own any more."""
    outbox.close(message.id, reason)
    tell(message)


def tell(message: KonstructMessage) -> None:
    """Tell the channel that something changed, and after the commit whoever waits for it."""
    delivery_hooks.changed(message)
    transaction.on_commit(partial(reply_wait.announce, message.tenant_id, message.id))
