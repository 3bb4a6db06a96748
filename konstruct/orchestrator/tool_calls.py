"""Tool calls: requested by an agent, approved by the user, and executed at most once.

A message is held while one of its calls waits for consent. A decision locks the row of the call.
The effect of a tool and the record of its execution are one transaction. So concurrent approvals,
killed workers and repeated deliveries execute a call once.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from konstruct.llm.completions import Completion, make_storable_value
from konstruct.orchestrator import exceptions, replies, usage
from konstruct.orchestrator.exceptions import ProgramToolsInvalid
from konstruct.orchestrator.messages import KonstructMessage, Thread, ThreadState, konstruct_message
from konstruct.orchestrator.models import Agent, AnswerOptions, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.models.replies import ToolCallState
from konstruct.orchestrator.tool_catalog import TOOLS, ToolContext, ToolRefused
from memory.models import Message
from tenants import redis_keys, traces, transaction
from tenants.audit.people import hold_people
from tenants.context import required_tenant_id, tenant_scope
from tenants.limits.quotas import QuotaExceeded
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType

# Why a message is held, by the state of its calls. The first one that fits is taken.
HELD_FOR_BY_STATE: Final = {
    ToolCallState.WAITING: HeldFor.CONSENT,
    ToolCallState.WITH_PROGRAM: HeldFor.PROGRAM,
}
DENIED = "The user does not want this. Do not do it, and do not ask again."
# The replies to a plain yes and a plain no.
CONSENT_GIVEN_REPLY = "Thank you: I will."
CONSENT_DENIED_REPLY = "All right: I will not."
EXPIRED = "The user did not answer in time, so this was not done. Do not claim that it was."
NO_RESULT = "The program did not send the result of this in time."

# The key of a thread has the ids of the calls of each scope, the first one first.
WAITING_CALLS: Final = ThreadState(
    redis_keys.pending_tool_confirm_key,
    lambda: ToolCall.objects.waiting().order_by("created_at", "pk"),
    lambda call: str(call.pk),
)


# --- Recording ------------------------------------------------------------------------------------


def record(
    message: KonstructMessage,
    agent: Agent,
    completion: Completion,
    *,
    round_number: int,
    program_tools: Collection[str] = (),
) -> bool:
    """Record the calls of the language model; return whether any of them waits.

    If a call waits, the message is held: first until all consents are decided, then until the
    program has sent the results of its tools. Invalid calls are recorded as failed, with the reason
    for the language model.

    Args:
        message: the message.
        agent: the agent that requests the calls.
        completion: the answer with the calls.
        round_number: the index of the answer, from 0.
        program_tools: names of the tools of the program that sent the message.
    """
    calls = validated_calls(
        message, agent, completion, round_number=round_number, program_tools=program_tools
    )
    states = {call.state for call in calls}
    reasons = (reason for state, reason in HELD_FOR_BY_STATE.items() if state in states)
    held_for = next(reasons, None)
    with transaction.atomic():
        WAITING_CALLS.write_on_commit(message.tenant_id, message.thread_id)
        ToolCall.objects.bulk_create(calls, ignore_conflicts=True)
        for call in calls:
            if call.state in HELD_FOR_BY_STATE:
                message_id = str(message.id)
                record_event(EventType.TOOL_CALL_WAITING, call.pk, about=message, detail=message_id)
        if held_for is not None:
            replies.hold(message, held_for)
    return held_for is not None


def validated_calls(
    message: KonstructMessage,
    agent: Agent,
    completion: Completion,
    *,
    round_number: int,
    program_tools: Collection[str] = (),
) -> list[ToolCall]:
    """Return the calls of a completion as unsaved rows, with their states.

    A call that waits for consent has the question to the user. A failed call has the reason for the
    language model, as its result.
    """
    calls = unsaved_calls(message, agent, completion, round_number)
    for call in calls:
        if call.name in program_tools:
            call.state = ToolCallState.WITH_PROGRAM
            continue
        try:
            call.question = _question(agent, call.name, call.arguments)
        except ToolRefused as error:
            set_result(call, ToolCallState.FAILED, f"Error: {error}")
    return calls


def unsaved_calls(
    message: KonstructMessage, agent: Agent, completion: Completion, round_number: int
) -> list[ToolCall]:
    """Return unsaved rows for the requested calls, in the state WAITING."""
    return [
        ToolCall(
            message_id=message.id,
            **Thread.of(message).as_filter,
            asked_by_id=None if agent.id == message.agent_id else agent.id,
            round=round_number,
            position=position,
            content="" if position else completion.text,
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            state=ToolCallState.WAITING,
            expires_at=Now() + replies.CONSENT_TIME,
        )
        for position, call in enumerate(completion.requested)
    ]


def _question(agent: Agent, name: str, arguments: Any) -> str:
    """Return the question to the user. Raises ToolRefused for an invalid call."""
    tool = TOOLS.get(name) if name in agent.tools else None
    if tool is None:
        known = ", ".join(sorted(agent.tools)) or "none"
        raise ToolRefused(f"there is no tool {name!r} here; there are: {known}")
    if not isinstance(arguments, dict):
        raise ToolRefused("the arguments are not a JSON object")
    tool.check(arguments)
    return tool.question(arguments)


def set_result(call: ToolCall, state: ToolCallState, result: str) -> None:
    """Set the end of a call, DONE or FAILED, and its result for the language model."""
    call.state, call.result, call.done_at = state, result, Now()


def calls_awaiting_consent(message_id: UUID) -> list[ToolCall]:
    """Return the calls of a message that wait for consent, in their order."""
    return list(ToolCall.objects.of_message(message_id).waiting())


def only_waiting_call(message: KonstructMessage) -> UUID | None:
    """Return the id of the user's tool call that waits for consent in the thread.

    None if no call waits, or more than one.
    """
    waiting = ToolCall.objects.waiting().filter(**Thread.of(message).as_filter)
    call_ids = list(waiting.values_list("pk", flat=True)[:2])
    return call_ids[0] if len(call_ids) == 1 else None


# --- Deciding -------------------------------------------------------------------------------------


def decide(
    tenant_id: UUID | str,
    call_id: UUID | str,
    approve: bool,
    *,
    by: str,
    user_id: str | None = None,
    visible: Q | None = None,
) -> ToolCall:
    """Approve or deny a call that waits for consent; return the changed call.

    A worker executes approved calls, and answers the message. Repeating a decision is no error.

    Args:
        tenant_id: the tenant.
        call_id: the call.
        approve: True: the call is executed.
        by: the person who decides, and the channel, for the record: "U024BE7LH in Slack".
        user_id: the user who decides, who must be the user of the message. None: not checked.
        visible: condition of the calls that the caller may see; None: all.

    Raises:
        RowNotFound: there is no such call, or the user may not decide it.
        AlreadyDecided: it was decided otherwise, or has expired.
    """
    with tenant_scope(tenant_id):
        with transaction.atomic():
            rows = ToolCall.objects.select_for_update(of=("self",)).select_related("message")
            try:
                call = rows.filter(visible or Q(), pk=UUID(str(call_id))).first()
            except ValueError:
                call = None
            if call is None or user_id not in (None, call.user_id):
                raise exceptions.RowNotFound(
                    f"No tool call that is yours to decide has the id {call_id}."
                )
            if call.state != ToolCallState.WAITING:
                approved = (ToolCallState.APPROVED, ToolCallState.DONE, ToolCallState.FAILED)
                same_states = approved if approve else (ToolCallState.DENIED,)
                if call.decided_at is None or call.state not in same_states:
                    raise exceptions.AlreadyDecided(
                        f"This does not wait for consent any more: it is {call.state}."
                    )
                return call
            if not ToolCall.objects.overdue().filter(pk=call.pk).exists():
                if approve:
                    _store_decision(call, ToolCallState.APPROVED, by=by)
                else:
                    _store_decision(call, ToolCallState.DENIED, by=by, result=DENIED)
                return call
        expire(call.pk)
        raise exceptions.AlreadyDecided(f"No answer came {call_id} in time: it was not done.")


def decided_by(message: KonstructMessage) -> str:
    """Return the value of `decided_by` for a decision by this message."""
    return f"{message.user_id}, by message {message.id}"


def has_decided(message: KonstructMessage) -> bool:
    """Return whether an earlier, killed attempt has stored the decision of this message."""
    calls = ToolCall.objects.filter(user_id=message.user_id, decided_by=decided_by(message))
    return calls.exists()


def expire(call_id: UUID) -> bool:
    """Expire an overdue call; return False if it is not overdue."""
    with transaction.atomic():
        call = ToolCall.objects.select_for_update().overdue().filter(pk=call_id).first()
        if call is None:
            return False
        if call.state == ToolCallState.WITH_PROGRAM:
            # Without an answer: the program that would read it is gone.
            _save_decision(call, ToolCallState.EXPIRED, by="timeout", result=NO_RESULT)
            replies.close(konstruct_message(call.message), NO_RESULT)
        else:
            _store_decision(call, ToolCallState.EXPIRED, by="timeout", result=EXPIRED)
    return True


def expire_overdue(message_id: UUID) -> int:
    """Expire the overdue tool calls of a message; return their number."""
    overdue = ToolCall.objects.overdue().filter(message_id=message_id).order_by("expires_at")
    return sum(expire(call_id) for call_id in list(overdue.values_list("pk", flat=True)))


def _store_decision(call: ToolCall, state: ToolCallState, *, by: str, result: str = "") -> None:
    """Store the decision, and release the message after the decision on its last call."""
    WAITING_CALLS.write_on_commit(call.tenant_id, call.thread_id)
    message = konstruct_message(call.message)
    _save_decision(call, state, by=by, result=result)
    is_held = PendingReply.objects.held(HeldFor.CONSENT).filter(pk=message.id).exists()
    if is_held and not calls_awaiting_consent(message.id):
        replies.release(message)
    else:
        replies.announce_change(message)


def _save_decision(call: ToolCall, state: ToolCallState, *, by: str, result: str) -> None:
    call.state, call.decided_by, call.decided_at, call.result = state, by, Now(), result
    call.save(update_fields=["state", "decided_by", "decided_at", "result"])
    call.refresh_from_db()


# --- Running --------------------------------------------------------------------------------------


def run_approved(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Run the approved calls, each at most once; return all calls with their results."""
    return [_run_once(call) if call.state == ToolCallState.APPROVED else call for call in calls]


def _run_once(call: ToolCall) -> ToolCall:
    with transaction.atomic():
        locked = ToolCall.objects.select_for_update().get(pk=call.pk)
        # Another worker may have run it.
        if locked.state != ToolCallState.APPROVED:
            return locked
        agent_id = locked.asked_by_id or locked.agent_id
        context = ToolContext(agent_id, locked.user_id, locked.message_id)
        try:
            with (
                transaction.atomic(),
                traces.span("tool", tenant_id=required_tenant_id(), tool=locked.name),
                usage.admit_memories(1),
            ):
                result = TOOLS[locked.name].run(locked.arguments, context)
            set_result(locked, ToolCallState.DONE, result)
        except (ToolRefused, QuotaExceeded) as refusal:
            set_result(locked, ToolCallState.FAILED, f"Error: {refusal}")
        locked.save(update_fields=["state", "result", "done_at"])
    return locked


# --- Tools of the program that sent a message -----------------------------------------------------

# The language model may call them beside the agent's own. Then the message is held until the
# program has sent the results. REST and chat completions use these functions.

# The limit of OpenAI's API.
MAX_TOOLS: Final = 128
CHOICES: Final = ("none", "auto", "required")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
CONTINUED_WITHOUT_ANSWER: Final = (
    "The program went on without an answer: it had what it needed from the calls."
)


def checked_options(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an answer for a program's tools; {} without tools.

    Args:
        sent: may have `tools`, `tool_choice` and `parallel_tool_calls`, as in OpenAI's API. None is
            the same as a missing option.

    Raises ProgramToolsInvalid.
    """
    tools, choice, parallel = map(sent.get, ("tools", "tool_choice", "parallel_tool_calls"))
    if not isinstance(parallel, bool | None):
        raise ProgramToolsInvalid("parallel_tool_calls", "This is true or false.")
    if not (choice is None or choice in CHOICES or type_of(choice)):
        detail = f"This is one of {', '.join(CHOICES)}, or an object that names a tool."
        raise ProgramToolsInvalid("tool_choice", detail)
    names = _checked_names([] if tools is None else tools)
    if type_of(choice) == "function" and _name_of(choice) not in names:
        detail = f"This names none of the tools: {', '.join(names) or 'there are none'}."
        raise ProgramToolsInvalid("tool_choice", detail)
    if choice == "required" and not names:
        raise ProgramToolsInvalid("tool_choice", "“required” needs at least one tool in tools.")
    if not tools or choice == "none":
        return {}
    options = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}
    given = {name: value for name, value in options.items() if value is not None}
    storable: dict[str, Any] = make_storable_value(given)
    return storable


def _checked_names(tools: Any) -> list[str]:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        raise ProgramToolsInvalid("tools", f"This is a list of at most {MAX_TOOLS} tools.")
    names = []
    for index, tool in enumerate(tools):
        if type_of(tool) != "function":
            detail = "Only tools of the type function can be called here."
            raise ProgramToolsInvalid(f"tools[{index}].type", detail, "unsupported_parameter")
        name = _name_of(tool)
        if not _NAME.fullmatch(name):
            detail = "A function has a name of 1 to 64 letters, digits, underscores and dashes."
            raise ProgramToolsInvalid(f"tools[{index}].function.name", detail)
        names.append(name)
    return names


def _name_of(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def type_of(value: Any) -> str | None:
    """Return the type that a JSON object has, as in OpenAI's API; None for another value."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else None


def option_needing_model(options: Mapping[str, Any]) -> str | None:
    """Return the name of an option that only a language model can follow, or None."""
    if type_of(options.get("response_format")) not in (None, "text"):
        return "response_format"
    return "tool_choice" if options.get("tool_choice") not in (None, "auto") else None


def awaits_program(call: ToolCall) -> bool:
    """Return whether the call waits for a result of the program that has the tool."""
    return call.state == ToolCallState.WITH_PROGRAM


def hold_for_program(message: KonstructMessage) -> bool:
    """Hold the message if one of its calls waits for a program; return whether one does."""
    with transaction.atomic():
        calls = ToolCall.objects.of_message(message.id).with_program().select_for_update()
        is_held = bool(list(calls))
        if is_held:
            replies.hold(message, HeldFor.PROGRAM)
    return is_held


def record_results(
    message: Message, results: Mapping[UUID, str], *, by: str, options: AnswerOptions | None
) -> bool:
    """Record results that a program sends; return False if all were recorded before.

    After the result of its last call the message is answered. Call it in a transaction.

    Args:
        message: the message.
        results: the results by the ids of the calls. Those of other calls are ignored.
        by: the sender, for the record.
        options: the new options of the answer, not saved yet. None: the program wants no answer,
            and the message is closed.

    Raises:
        PersonBeingErased: an erasure of the user is requested, and not done yet.
        ResultsMissing: the program wants an answer, and other calls wait for their results.
    """
    hold_people([message.user_id], agent_ids=[message.agent_id])
    calls = list(ToolCall.objects.of_message(message.id).select_for_update())
    waiting = [call for call in calls if awaits_program(call)]
    missing = [call.pk for call in waiting if call.pk not in results]
    if missing and options is not None:
        raise exceptions.ResultsMissing(missing)
    answered = [call for call in waiting if call.pk in results]
    for call in answered:
        call.state, call.result = ToolCallState.DONE, results[call.pk]
        call.decided_by, call.decided_at, call.done_at = by, Now(), Now()
        call.save(update_fields=["state", "result", "decided_by", "decided_at", "done_at"])
    if answered and options is not None:
        AnswerOptions.objects.filter(pk=message.pk).delete()
        options.save_for(message)
    is_held = PendingReply.objects.held(HeldFor.PROGRAM).filter(pk=message.pk).exists()
    if answered and is_held and not missing:
        if options is None:
            replies.close(konstruct_message(message), CONTINUED_WITHOUT_ANSWER)
        else:
            replies.release(konstruct_message(message))
    return bool(answered)


def answer_calls(message: Message, results: Mapping[UUID, str], *, by: str) -> bool:
    """Record the results of all calls for which a message waits, so that it is answered.

    The options of the answer stay, without `tool_choice`. Call it in a transaction.

    Args:
        message: the message.
        results: the results by the ids of the calls.
        by: the sender, for the record.

    Returns:
        False if exactly these results were recorded before.

    Raises:
        PersonBeingErased: an erasure of the user is requested, and not done yet.
        ProgramToolsInvalid: the message has no such call.
        ResultsMissing: other calls wait for their results.
        WrongState: the message does not wait for these results.
    """
    known = set(ToolCall.objects.filter(message_id=message.pk).values_list("pk", flat=True))
    if unknown := [str(call_id) for call_id in results if call_id not in known]:
        raise ProgramToolsInvalid("results", f"This message has no calls {', '.join(unknown)}.")
    if _are_recorded(message, results):
        return False
    stored = AnswerOptions.objects.filter(pk=message.pk).first()
    options = stored or AnswerOptions(options={}, instructions=[])
    options.options.pop("tool_choice", None)
    is_new = record_results(message, results, by=by, options=options)
    if not _are_recorded(message, results):
        raise exceptions.WrongState(
            "The message does not wait for these results of a program, or has others. Its "
            "`waits_for` has the calls that wait."
        )
    return is_new


def _are_recorded(message: Message, results: Mapping[UUID, str]) -> bool:
    done = ToolCall.objects.filter(message_id=message.pk, pk__in=results, state=ToolCallState.DONE)
    return dict(done.values_list("pk", "result")) == dict(results)
