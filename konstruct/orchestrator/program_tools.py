"""Tools of the program that sent a message.

The language model may call them beside the agent's own. Then the message is held until the program
has sent the results. REST and chat completions use these functions.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now

from konstruct.llm.completions import make_storable_value
from konstruct.orchestrator import replies
from konstruct.orchestrator.exceptions import ProgramToolsInvalid, ResultsMissing, WrongState
from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import AnswerOptions, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.models.replies import ToolCallState
from memory.models import Message
from tenants import transaction
from tenants.audit.people import hold_people

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
    _check_tools([] if tools is None else tools)
    if not tools or choice == "none":
        return {}
    options = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}
    given = {name: value for name, value in options.items() if value is not None}
    storable: dict[str, Any] = make_storable_value(given)
    return storable


def _check_tools(tools: Any) -> None:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        raise ProgramToolsInvalid("tools", f"This is a list of at most {MAX_TOOLS} tools.")
    for index, tool in enumerate(tools):
        if type_of(tool) != "function":
            detail = "Only tools of the type function can be called here."
            raise ProgramToolsInvalid(f"tools[{index}].type", detail, "unsupported_parameter")
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            detail = "A function has a name of 1 to 64 letters, digits, underscores and dashes."
            raise ProgramToolsInvalid(f"tools[{index}].function.name", detail)


def type_of(value: Any) -> str | None:
    """Return the type that a JSON object has, as in OpenAI's API; None for another value."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else None


def requires_call(options: Mapping[str, Any]) -> bool:
    """Return whether the options demand a call, which needs a language model."""
    return options.get("tool_choice") not in (None, "auto")


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
    message: Message,
    results: Mapping[UUID, str],
    *,
    by: str,
    options: AnswerOptions | None,
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
        raise ResultsMissing(missing)
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
        raise WrongState(
            "The message does not wait for these results of a program, or has others. Its "
            "`waits_for` has the calls that wait."
        )
    return is_new


def _are_recorded(message: Message, results: Mapping[UUID, str]) -> bool:
    done = ToolCall.objects.filter(message_id=message.pk, pk__in=results, state=ToolCallState.DONE)
    return dict(done.values_list("pk", "result")) == dict(results)
