"""Calls of tools that the program has which sent the message: it is asked, and sends the results.

Such a call holds its message as one does that waits for consent. Who sends results and who holds
the message lock the calls first, so that no result falls between the two.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import AnswerOptions, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.replies import holds
from memory.models import Message
from tenants import transaction

WENT_ON = "The program went on without an answer: it had what it needed from the calls."


def is_out(call: ToolCall) -> bool:
    """Whether the call's result is the program's to send."""
    return call.state == ToolCallState.WITH_PROGRAM


def out_of(message_id: UUID) -> list[ToolCall]:
    """The calls of a message whose results are the program's to send, in their order."""
    return list(ToolCall.objects.of_message(message_id).with_program())


def hold_if_out(message: KonstructMessage) -> bool:
    """Hold the message if the program has results to send; whether it does."""
    with transaction.atomic():
        out = ToolCall.objects.of_message(message.id).with_program().select_for_update()
        is_held = bool(list(out))
        if is_held:
            holds.hold(message, HeldFor.PROGRAM)
    return is_held


def take_results(
    message: Message,
    results: Mapping[UUID, str],
    *,
    by: str,
    options: Mapping[str, Any] | None,
    instructions: Sequence[str] = (),
) -> bool:
    """Write down what came of calls of a message; False if that stands already, and stays.

    With that of its last call the message goes on. Call it in a transaction.

    Args:
        results: by the ids of the calls, of which others than the program's are left alone.
        by: who sends them, for the record.
        options: what is asked of the answer from now on, as AnswerOptions has it; None if the
            program wants none, and the message is given up.
        instructions: the program's system and developer messages from now on.
    """
    calls = list(ToolCall.objects.of_message(message.id).select_for_update())
    taken = [call for call in calls if is_out(call) and call.pk in results]
    for call in taken:
        call.state, call.result = ToolCallState.DONE, results[call.pk]
        call.decided_by, call.decided_at, call.done_at = by, Now(), Now()
        call.save(update_fields=["state", "result", "decided_by", "decided_at", "done_at"])
    is_held = PendingReply.objects.held(HeldFor.PROGRAM).filter(pk=message.pk).exists()
    if taken and is_held and not any(map(is_out, calls)):
        if options is None:
            holds.close(konstruct_message(message), WENT_ON)
        else:
            AnswerOptions.objects.replace(message, options, instructions)
            holds.release(konstruct_message(message))
    return bool(taken)
