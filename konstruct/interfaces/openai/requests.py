"""Requests for chat completions: reading and validating them.

Only the user's last message is stored. The turns before it are the history (completions.py).
System and developer messages are instructions. A parameter that would give the answer
another form is refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from konstruct.api.auth.authentication import Caller
from konstruct.api.http.problems import problem_of
from konstruct.channels.rest.serializers import SamplingSerializer
from konstruct.interfaces.errors import InvalidParameter
from konstruct.llm.completions import make_storable, make_storable_value
from konstruct.orchestrator import exceptions, tool_calls
from konstruct.orchestrator.builder import LENGTH_LIMITS
from memory.arguments import is_blank, is_unicode

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_INSTRUCTIONS: Final = frozenset({"system", "developer"})

SAMPLING: Final = tuple(dict.fromkeys([*map(str, SamplingSerializer().fields), *LENGTH_LIMITS]))

# Names of the user and the thread, the first one counts. A program sets headers itself, and may
# forward a body of its user's. The last parameter of each list is often only a hash.
USER_HEADERS: Final = ("X-OpenWebUI-User-Id", "X-SM-User-Id")
USER_PARAMETERS: Final = ("metadata.user_id", "user", "safety_identifier")
THREAD_HEADERS: Final = ("X-OpenWebUI-Chat-Id", "X-SM-Conversation-Id")
THREAD_PARAMETERS: Final = (
    "metadata.thread_id",
    "metadata.conversation_id",
    "metadata.chat_id",
    "prompt_cache_key",
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A valid request for a chat completion."""

    model: str
    content: str
    """The text of the user's last message, which is stored; "" if `continues`."""
    name: str
    """The display name of the speaker, or ""."""
    history: tuple[dict[str, str], ...]
    """The turns before the user's last message, as {"role", "content"}, without instructions."""
    messages_with_other_parts: int
    """The number of messages before it with images, audio or files, which are left out."""
    instructions: tuple[str, ...]
    """The texts of system and developer messages, in their order."""
    results: Mapping[str, str]
    """The results of calls of the client's tools: a text by each call's id."""
    continues: tuple[str, ...]
    """The ids of the calls with results in the last messages; they continue an answer."""
    options: Mapping[str, Any]
    """The client's tools, the sampling parameters and the form of the answer."""
    stream: bool
    body: Mapping[str, Any]
    """The whole body."""


def read_request(body: Any) -> ChatRequest:
    """Read the body of a request. Raises InvalidParameter for an invalid or unsupported one."""
    if not isinstance(body, Mapping):
        raise InvalidParameter("body", "Send one JSON object.")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise InvalidParameter("model", "Give the name of an agent: GET /v1/models lists them.")
    stream = body.get("stream")
    if not isinstance(stream, bool | None):
        raise InvalidParameter("stream", "This is true or false.")
    _refuse_unsupported(body)
    messages = _messages(body.get("messages"))
    turns = [turn for turn in enumerate(messages) if turn[1]["role"] not in _INSTRUCTIONS]
    if not turns:
        raise InvalidParameter("messages", "Give at least one message of the user.")
    index, new = turns[-1]
    if new["role"] not in ("user", "tool"):
        detail = f"The last message is the user's or a tool's, and not of the role {new['role']}."
        raise InvalidParameter(f"messages[{index}].role", detail)
    content = name = ""
    if new["role"] == "user":
        content = _require_text(new.get("content"), f"messages[{index}].content")
        name = new.get("name") or ""
    if not isinstance(name, str):
        raise InvalidParameter(f"messages[{index}].name", "A name is text.")
    results = {}
    for position, turn in turns:
        if turn["role"] != "tool":
            continue
        call_id = turn.get("tool_call_id")
        if not isinstance(call_id, str):
            detail = "Give the id of the call whose result this is."
            raise InvalidParameter(f"messages[{position}].tool_call_id", detail)
        results[call_id] = _text(turn.get("content"))
    last = takewhile(lambda turn: turn[1]["role"] == "tool", reversed(turns))
    roles = [turn["role"] for _, turn in turns]
    last_user = len(roles) - 1 - roles[::-1].index("user") if "user" in roles else 0
    before = [turn for _, turn in turns[:last_user]]
    return ChatRequest(
        model=model,
        content=content,
        name=name,
        results=results,
        continues=tuple(str(turn["tool_call_id"]) for _, turn in last),
        options=_options(body),
        instructions=tuple(
            _instruction(message.get("content"), f"messages[{index}].content")
            for index, message in enumerate(messages)
            if message["role"] in _INSTRUCTIONS
        ),
        history=tuple(_history(before)),
        messages_with_other_parts=sum(
            any(tool_calls.type_of(part) != "text" for part in turn["content"])
            for turn in before
            if isinstance(turn.get("content"), list)
        ),
        stream=bool(stream),
        body=body,
    )


def user_of(request: Request, chat: ChatRequest, caller: Caller) -> str:
    """Return the user that the request names, or the user that the key is bound to.

    Raises OutsideOfKey if they differ, and InvalidParameter if there is neither.
    """
    user_id = next(_sent_values(request, chat.body, USER_HEADERS, USER_PARAMETERS), caller.user_id)
    if user_id is None:
        detail = (
            "Name the user, since an agent remembers each user apart: send `user`, or one of the "
            f"headers {' and '.join(USER_HEADERS)}, or use a key that is bound to a user."
        )
        raise InvalidParameter("user", detail, code="user_required")
    return caller.user(user_id)


def thread_of(request: Request, chat: ChatRequest) -> str | None:
    """Return the conversation that the request names, or None."""
    return next(_sent_values(request, chat.body, THREAD_HEADERS, THREAD_PARAMETERS), None)


def labels_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a request except the names of its user and conversation."""
    names = (*USER_PARAMETERS, *THREAD_PARAMETERS)
    metadata = body.get("metadata") or {}
    return {name: metadata[name] for name in metadata if f"metadata.{name}" not in names}


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Return whether a stream ends with the number of its tokens."""
    options = body.get("stream_options")
    include = options.get("include_usage") if isinstance(options, Mapping) else None
    return bool(body.get("stream")) and include is True


def _sent_values(
    request: Request,
    body: Mapping[str, Any],
    headers: tuple[str, ...],
    parameters: tuple[str, ...],
) -> Iterator[str]:
    """Yield the values of headers and parameters that are not empty."""
    for header in headers:
        if sent := request.headers.get(header, ""):
            try:
                yield sent.encode("latin-1").decode()
            except UnicodeError:  # two ids must not become one
                raise InvalidParameter(header, f"{header} is to be UTF-8.") from None
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise InvalidParameter("metadata", "This is an object.")
    values = {**body, **{f"metadata.{name}": item for name, item in (metadata or {}).items()}}
    for parameter in parameters:
        value = values.get(parameter)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise InvalidParameter(parameter, "This is text.")
        yield value


def _messages(messages: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InvalidParameter("messages", "This is a list of messages.")
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or role not in ROLES:
            roles = ", ".join(sorted(ROLES))
            detail = f"Each message is an object with a role that is one of {roles}."
            raise InvalidParameter(f"messages[{index}]", detail)
    return messages


def _history(turns: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the turns of users and assistants that are not blank.

    A prompt has texts only, so calls of tools and their results become texts of the assistant.
    """
    names: dict[str, str] = {}
    for turn in turns:
        lines = [_text(turn.get("content"))]
        if turn["role"] in ("tool", "function"):
            name = names.get(str(turn.get("tool_call_id"))[:100], "a tool")
            lines = [f"(Result of {name}: {lines[0]})"]
        elif turn["role"] == "assistant":
            for call_id, name, arguments in _calls(turn.get("tool_calls")):
                names[call_id] = name
                lines.append(f"(Called {name} with {arguments})")
        content = make_storable("\n".join(filter(None, lines)))
        if not is_blank(content):
            yield {"role": "user" if turn["role"] == "user" else "assistant", "content": content}


def _calls(tool_calls: Any) -> Iterator[tuple[str, str, str]]:
    """Yield id, name and arguments of each readable call."""
    for call in tool_calls if isinstance(tool_calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(name := function.get("name"), str):
            arguments = function.get("arguments")
            yield str(call.get("id"))[:100], name, arguments if isinstance(arguments, str) else ""


def _instruction(content: Any, parameter: str) -> str:
    text = _require_text(content, parameter)
    if "\0" in text or not is_unicode(text):
        detail = (
            "An instruction is Unicode text without NUL characters and halves of surrogate pairs."
        )
        raise InvalidParameter(parameter, detail)
    return text


def _require_text(content: Any, parameter: str) -> str:
    """Return the text of content. Raises InvalidParameter for content with other parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise InvalidParameter(parameter, "Content is text, or a list of parts of the type text.")
    for part in content:
        if tool_calls.type_of(part) != "text" or not isinstance(part.get("text"), str):
            detail = "Only parts of the type text can be read here: no images, audio or files."
            raise InvalidParameter(parameter, detail, code="unsupported_content")
    return _text(content)


def _text(content: Any) -> str:
    """Return the text of content, without its other parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _refuse_unsupported(body: Mapping[str, Any]) -> None:
    """Refuse parameters that ask for another answer than one message of text."""
    unsupported = {
        "n": body.get("n") not in (None, 1),
        "logprobs": body.get("logprobs") not in (None, False),
        "top_logprobs": body.get("top_logprobs") not in (None, 0),
        "audio": body.get("audio") is not None,
        "modalities": body.get("modalities") not in (None, ["text"]),
        "functions": bool(body.get("functions")) and body.get("function_call") != "none",
    }
    for parameter, is_sent in unsupported.items():
        if is_sent:
            detail = f"{parameter} is not supported here as it was sent. Leave it out."
            raise InvalidParameter(parameter, detail, code="unsupported_parameter")


def _options(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the answer, under their names in the request.

    Raises InvalidParameter.
    """
    options = _sampling(body)
    if tool_calls.type_of(options.get("response_format")) == "text":  # the default
        del options["response_format"]
    if wants_usage(body):  # the language model reports it at the end of its own stream
        options["stream_options"] = {"include_usage": True}
    try:
        tools = tool_calls.checked_options(body)
    except exceptions.ProgramToolsInvalid as error:
        raise InvalidParameter(error.parameter, str(error), code=error.openai_code) from error
    return {**make_storable_value(options), **tools}


def _sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling parameters that are not null."""
    sent = {name: body[name] for name in SAMPLING if body.get(name) is not None}
    limits = [name for name in LENGTH_LIMITS if name in sent]
    if len(limits) > 1:
        raise InvalidParameter(limits[1], f"Send {limits[0]} or {limits[1]}, and not both.")
    checked = {"max_completion_tokens" if name in limits else name: sent[name] for name in sent}
    if isinstance(sent.get("stop"), str):
        checked["stop"] = [sent["stop"]]
    try:
        SamplingSerializer(data=checked).is_valid(raise_exception=True)
    except ValidationError as error:
        first = problem_of(error, data=checked).errors[0]
        name = first.field.partition(".")[0]
        name = limits[0] if name == "max_completion_tokens" else name
        raise InvalidParameter(name, f"{name}: {first.detail}") from error
    return sent | {name: int(sent[name]) for name in ("seed", *limits) if name in sent}
