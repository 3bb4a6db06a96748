"""Tool calls: requested by an agent, approved by the user, and executed at most once.

A call that waits for consent holds its message. Every decision on it is made under the row's lock;
the effect and the record of its execution are one transaction. Concurrent approvals, a killed
worker and a repeated delivery therefore have the same result.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from konstruct.llm.completions import Completion
from konstruct.orchestrator import thread_cache
from konstruct.orchestrator.exceptions import AlreadyDecided, ToolCallNotFound
from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import Agent, AnswerOptions, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.notifications import notify_many
from konstruct.orchestrator.replies import queue
from konstruct.orchestrator.tool_catalog import TOOLS, ToolContext, ToolRefused
from memory.models import Message
from memory.scopes import scope_number
from tenants import traces, transaction
from tenants.context import required_tenant_id, tenant_scope
from tenants.redis_keys import pending_tool_confirm_key

CONTINUED_WITHOUT_ANSWER = (
    "The program went on without an answer: it had what it needed from the calls."
)
# By state of a call: the person or program that its message waits for, first one first.
HELD_FOR: Final = {
    ToolCallState.WAITING: HeldFor.CONSENT,
    ToolCallState.WITH_PROGRAM: HeldFor.PROGRAM,
}
DENIED = "The user does not want this. Do not do it, and do not ask again."
# The replies to a plain yes and a plain no.
CONSENT_GIVEN_REPLY = "Thank you: I will."
CONSENT_DENIED_REPLY = "All right: I will not."
EXPIRED = "The user did not answer in time, so this was not done. Do not claim that it was."
NO_RESULT = "The program did not send the result of this in time."


# --- What was asked for ---------------------------------------------------------------------------


def record(
    message: KonstructMessage,
    agent: Agent,
    completion: Completion,
    *,
    round_number: int,
    of_program: Collection[str] = (),
) -> bool:
    """Record the calls of the language model; return whether any of them waits.

    If so the message is held: until all consent is decided, then until the program has sent the
    results of its tools. Invalid calls are recorded as failed, with the reason for the language
    model.

    Args:
        of_program: names of the tools of the program that sent the message.
    """
    rows = checked(message, agent, completion, round_number=round_number, of_program=of_program)
    states = {row.state for row in rows}
    held_for = next((held for state, held in HELD_FOR.items() if state in states), None)
    with transaction.atomic():
        _mark_changing(message.thread_id)
        ToolCall.objects.bulk_create(rows, ignore_conflicts=True)
        if held_for is not None:
            queue.hold(message, held_for)
        if held_for == HeldFor.CONSENT:
            notify_many(row.pk for row in rows if row.state == ToolCallState.WAITING)
    return held_for is not None


def checked(
    message: KonstructMessage,
    agent: Agent,
    completion: Completion,
    *,
    round_number: int,
    of_program: Collection[str] = (),
) -> list[ToolCall]:
    """Return the calls of a completion as unsaved rows: waiting, or failed.

    A call that waits for consent has the question to the user; a failed one has the reason for the
    language model.
    """
    rows = _blank(message, agent, completion, round_number)
    for row in rows:
        if row.name in of_program:
            row.state = ToolCallState.WITH_PROGRAM
            continue
        try:
            row.question = _question(agent, row.name, row.arguments)
        except ToolRefused as refusal:
            row.state, row.result, row.done_at = ToolCallState.FAILED, f"Error: {refusal}", Now()
    return rows


def note(
    message: KonstructMessage,
    agent: Agent,
    completion: Completion,
    *,
    round_number: int,
    done: int | None,
    results: Sequence[str],
) -> None:
    """Record calls without consent: at most one was executed, the others failed."""
    rows = _blank(message, agent, completion, round_number)
    for position, (row, result) in enumerate(zip(rows, results, strict=True)):
        row.state = ToolCallState.DONE if position == done else ToolCallState.FAILED
        row.result, row.done_at = result, Now()
    ToolCall.objects.bulk_create(rows, ignore_conflicts=True)


def waiting_for(message_id: UUID) -> list[ToolCall]:
    """Return the calls of a message that wait for consent, in their order."""
    return list(ToolCall.objects.of_message(message_id).waiting())


def only_waiting_call(message: KonstructMessage) -> UUID | None:
    """Return the call that waits for this user's consent in this thread, if it is exactly one."""
    key = pending_tool_confirm_key(required_tenant_id(), message.thread_id)
    copy = thread_cache.read_through(key, partial(_waiting_in, message.thread_id))
    found = copy.get(_scope(message.agent_id, message.user_id), "").split()
    return UUID(found[0]) if len(found) == 1 else None


# --- Deciding -------------------------------------------------------------------------------------


def decide(
    tenant_id: UUID | str,
    call_id: UUID | str,
    approve: bool,
    *,
    by: str,
    user_id: str | None = None,
    may: Q | None = None,
) -> ToolCall:
    """Approve or deny a call that waits for consent; return the changed call.

    A worker executes approved calls, and answers the message. Repeating a decision is no error.

    Args:
        by: the person who decides, and the channel, for the record: "U024BE7LH in Slack".
        user_id: the user who decides, if the channel knows: only the user of the message may.
        may: the calls that the caller may see, if not all.

    Raises:
        ToolCallNotFound: there is no such call, or the user may not decide it.
        AlreadyDecided: it was decided otherwise, or has expired.
    """
    with tenant_scope(tenant_id):
        if (call := _decided_in_time(call_id, approve, by, user_id, may)) is not None:
            return call
        expire(UUID(str(call_id)))
        raise AlreadyDecided(f"No answer came {call_id} in time: it was not done.")


def decide_by_message(message: KonstructMessage, call_id: UUID, approve: bool) -> None:
    """Decide the call by the user's message. Raises as `decide` does."""
    by = _by_message(message)
    decide(message.tenant_id, call_id, approve, by=by, user_id=message.user_id)


def has_decided(message: KonstructMessage) -> bool:
    """Return whether this message has decided a call, in an attempt that was killed."""
    decided = ToolCall.objects.filter(user_id=message.user_id, decided_by=_by_message(message))
    return decided.exists()


def expire(call_id: UUID) -> bool:
    """Expire a call that was not decided in time; return False if it is not overdue."""
    with transaction.atomic():
        call = ToolCall.objects.select_for_update().overdue().filter(pk=call_id).first()
        if call is None:
            return False
        if call.state == ToolCallState.WITH_PROGRAM:
            # No program would read an answer.
            _note(call, ToolCallState.EXPIRED, by="timeout", result=NO_RESULT)
            queue.close(konstruct_message(call.message), NO_RESULT)
        else:
            _settle(call, ToolCallState.EXPIRED, by="timeout", result=EXPIRED)
    return True


def expire_overdue(message_id: UUID) -> int:
    """Expire the overdue tool calls of a message; return their number."""
    overdue = ToolCall.objects.overdue().filter(message_id=message_id).order_by("expires_at")
    return sum(expire(call_id) for call_id in list(overdue.values_list("pk", flat=True)))


def _decided_in_time(
    call_id: UUID | str, approve: bool, by: str, user_id: str | None, may: Q | None
) -> ToolCall | None:
    """Return the call, decided now or in the same way before; None if it has expired."""
    with transaction.atomic():
        rows = ToolCall.objects.select_for_update(of=("self",)).select_related("message")
        rows = rows.filter(pk=_as_uuid(call_id))
        call = rows.filter(may).first() if may is not None else rows.first()
        if call is None or user_id not in (None, call.user_id):
            raise ToolCallNotFound(f"No tool call that is yours to decide has the id {call_id}.")
        if call.state != ToolCallState.WAITING:
            return _same_decision(call, approve)
        if ToolCall.objects.overdue().filter(pk=call.pk).exists():
            return None
        if approve:
            _settle(call, ToolCallState.APPROVED, by=by)
        else:
            _settle(call, ToolCallState.DENIED, by=by, result=DENIED)
    return call


def _same_decision(call: ToolCall, approve: bool) -> ToolCall:
    approved = (ToolCallState.APPROVED, ToolCallState.DONE, ToolCallState.FAILED)
    same = approved if approve else (ToolCallState.DENIED,)
    if call.decided_at is not None and call.state in same:
        return call
    raise AlreadyDecided(f"This does not wait for consent any more: it is {call.state}.")


def _settle(call: ToolCall, state: ToolCallState, *, by: str, result: str = "") -> None:
    """Store the decision, and release the message after its last call."""
    _mark_changing(call.thread_id)
    message = konstruct_message(call.message)
    _note(call, state, by=by, result=result)
    is_held = PendingReply.objects.held(HeldFor.CONSENT).filter(pk=message.id).exists()
    if is_held and not waiting_for(message.id):
        queue.release(message)
    else:
        queue.announce_change(message)


def _note(call: ToolCall, state: ToolCallState, *, by: str, result: str) -> None:
    call.state, call.decided_by, call.decided_at, call.result = state, by, Now(), result
    call.save(update_fields=["state", "decided_by", "decided_at", "result"])
    call.refresh_from_db()


# --- Doing ----------------------------------------------------------------------------------------


def carry_out(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Run the approved calls, each at most once; return all calls with their results."""
    return [_run_once(call) if call.state == ToolCallState.APPROVED else call for call in calls]


def _run_once(call: ToolCall) -> ToolCall:
    with transaction.atomic():
        locked = ToolCall.objects.select_for_update().get(pk=call.pk)
        # Another worker may have run it.
        if locked.state != ToolCallState.APPROVED:
            return locked
        context = ToolContext(
            locked.asked_by_id or locked.agent_id, locked.user_id, locked.message_id
        )
        try:
            with (
                transaction.atomic(),
                traces.span("tool", tenant_id=required_tenant_id(), tool=locked.name),
            ):
                locked.result = TOOLS[locked.name].run(locked.arguments, context)
            locked.state = ToolCallState.DONE
        except ToolRefused as refusal:
            locked.state, locked.result = ToolCallState.FAILED, f"Error: {refusal}"
        locked.done_at = Now()
        locked.save(update_fields=["state", "result", "done_at"])
    return locked


# --- Tools of the client -------------------------------------------------------------------------


def awaits_client(call: ToolCall) -> bool:
    """Return whether the program must send the call's result."""
    return call.state == ToolCallState.WITH_PROGRAM


def awaiting_client(message_id: UUID) -> list[ToolCall]:
    """Return the calls of a message that wait for results of the program, in their order."""
    return list(ToolCall.objects.of_message(message_id).with_program())


def hold_for_client(message: KonstructMessage) -> bool:
    """Hold the message if the program must send results; return whether it does."""
    with transaction.atomic():
        out = ToolCall.objects.of_message(message.id).with_program().select_for_update()
        is_held = bool(list(out))
        if is_held:
            queue.hold(message, HeldFor.PROGRAM)
    return is_held


def take_results(
    message: Message,
    results: Mapping[UUID, str],
    *,
    by: str,
    options: Mapping[str, Any] | None,
    instructions: Sequence[str] = (),
) -> bool:
    """Record the results of calls of a message; return False if they are recorded already.

    After the result of its last call, the message continues. Call it in a transaction.

    Args:
        results: by the ids of the calls; calls of other tools are ignored.
        by: the sender, for the record.
        options: the new options of the answer, as in AnswerOptions; None if the program wants no
            answer, so that the message fails.
        instructions: the program's new system and developer messages.
    """
    calls = list(ToolCall.objects.of_message(message.id).select_for_update())
    taken = [call for call in calls if awaits_client(call) and call.pk in results]
    for call in taken:
        call.state, call.result = ToolCallState.DONE, results[call.pk]
        call.decided_by, call.decided_at, call.done_at = by, Now(), Now()
        call.save(update_fields=["state", "result", "decided_by", "decided_at", "done_at"])
    is_held = PendingReply.objects.held(HeldFor.PROGRAM).filter(pk=message.pk).exists()
    if taken and is_held and not any(map(awaits_client, calls)):
        if options is None:
            queue.close(konstruct_message(message), CONTINUED_WITHOUT_ANSWER)
        else:
            AnswerOptions.objects.replace(message, options, instructions)
            queue.release(konstruct_message(message))
    return bool(taken)


# --- Inside ---------------------------------------------------------------------------------------


def _blank(
    message: KonstructMessage, agent: Agent, completion: Completion, round_number: int
) -> list[ToolCall]:
    """Return rows of the requested calls, which wait."""
    return [
        ToolCall(
            message_id=message.id,
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            asked_by_id=None if agent.id == message.agent_id else agent.id,
            round=round_number,
            position=position,
            content="" if position else completion.text,
            call_id=each.call_id,
            name=each.name,
            arguments=each.arguments,
            state=ToolCallState.WAITING,
            expires_at=Now() + timedelta(seconds=settings.TOOL_CONSENT_SECONDS),
        )
        for position, each in enumerate(completion.requested)
    ]


def _question(agent: Agent, name: str, arguments: Any) -> str:
    """Return the question to the user; raise ToolRefused for an invalid call."""
    tool = TOOLS.get(name) if name in agent.tools else None
    if tool is None:
        known = ", ".join(sorted(agent.tools)) or "none"
        raise ToolRefused(f"there is no tool {name!r} here; there are: {known}")
    if not isinstance(arguments, dict):
        raise ToolRefused("the arguments are not a JSON object")
    tool.check(arguments)
    return tool.question(arguments)


def _waiting_in(thread_id: str) -> thread_cache.Copy:
    rows = ToolCall.objects.waiting().filter(thread_id=thread_id).order_by("created_at", "pk")
    found: thread_cache.Copy = {}
    for agent_id, user_id, pk in rows.values_list("agent_id", "user_id", "pk"):
        scope = _scope(agent_id, user_id)
        found[scope] = f"{found.get(scope, '')} {pk}".strip()
    return found


def _scope(agent_id: UUID, user_id: str) -> str:
    return str(scope_number(agent_id, user_id))


def _mark_changing(thread_id: str) -> None:
    thread_cache.changing(pending_tool_confirm_key(required_tenant_id(), thread_id))


def _by_message(message: KonstructMessage) -> str:
    return f"{message.user_id}, by message {message.id}"


def _as_uuid(call_id: UUID | str) -> UUID:
    try:
        return UUID(str(call_id))
    except ValueError:
        raise ToolCallNotFound(f"{call_id!r} is not the id of a tool call.") from None
