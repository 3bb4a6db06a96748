"""Requests for chat completions: what of one counts here, and what is refused.

Of the history, only the last message of the user is new. System and developer messages are
instructions (following.py). Tools, sampling and the form of the answer are options (options.py).
A parameter that would change the form of the answer otherwise is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from konstruct.api.http.errors.problems import Refusal
from konstruct.interfaces.openai.errors import refused
from konstruct.interfaces.openai.options import read_options
from memory.arguments import is_unicode

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_INSTRUCTIONS: Final = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for a chat completion, checked as far as nothing but itself is needed."""

    model: str
    content: str
    """The text of the last message of the user: the only one that is new; "" if `continues`."""
    name: str
    """The display name of the speaker, or ""."""
    said: tuple[tuple[str, str], ...]
    """The history and the new message: role and text of each turn, without instructions."""
    instructions: tuple[str, ...]
    """The texts of system and developer messages, in their order."""
    results: Mapping[str, str]
    """What came of calls of the client's tools: a text by each call's id."""
    continues: tuple[str, ...]
    """The ids of those that stand last, and with which the user's message is to go on."""
    options: Mapping[str, Any]
    """What is asked of the answer, as AnswerOptions has it."""
    stream: bool
    body: Mapping[str, Any]
    """All that was sent, for the parameters that say who speaks, and where."""

    @property
    def said_before(self) -> str | None:
        """What the user has said before, by the client's history; None if it has no answer in it.

        A client that keeps a history sends the answers too.
        """
        before = self.said[:-1]
        if not any(role == "assistant" for role, _ in before):
            return None
        return next((text for role, text in reversed(before) if role == "user"), None)


def read_request(body: Any) -> ChatRequest:
    """Read the body of a request. Raises Refusal for what cannot be answered."""
    if not isinstance(body, Mapping):
        raise Refusal(refused("body", "Send one JSON object."))
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refusal(refused("model", "Give the name of an agent: GET /v1/models lists them."))
    stream = body.get("stream")
    if not isinstance(stream, bool | None):
        raise Refusal(refused("stream", "This is true or false."))
    _refuse_other_answers(body)
    turns = _turns(body.get("messages"))
    place, new = turns[-1]
    if new["role"] not in ("user", "tool"):
        raise Refusal(
            refused(
                f"messages[{place}].role",
                "The last message is to be the user's, or the result of a tool, and is of the "
                f"role {new['role']}.",
            )
        )
    content = name = ""
    if new["role"] == "user":
        content = _whole_text(new.get("content"), f"messages[{place}].content")
        name = new.get("name") or ""
    if not isinstance(name, str):
        raise Refusal(refused(f"messages[{place}].name", "A name is text."))
    results = [(_call_id(*turn), turn[1]) for turn in turns if turn[1]["role"] == "tool"]
    last = takewhile(lambda turn: turn[1]["role"] == "tool", reversed(turns))
    return ChatRequest(
        model=model,
        content=content,
        name=name,
        results={call_id: _text(turn.get("content")) for call_id, turn in results},
        continues=tuple(str(turn["tool_call_id"]) for _, turn in last),
        options=read_options(body),
        instructions=_instructions(body["messages"]),
        said=tuple((turn["role"], _text(turn.get("content"))) for _, turn in turns),
        stream=bool(stream),
        body=body,
    )


def _turns(messages: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """The messages that are no instructions, each with its place."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise Refusal(refused("messages", "This is a list of messages."))
    for place, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or role not in ROLES:
            roles = ", ".join(sorted(ROLES))
            why = f"Each message is an object with a role that is one of {roles}."
            raise Refusal(refused(f"messages[{place}]", why))
    turns = [each for each in enumerate(messages) if each[1]["role"] not in _INSTRUCTIONS]
    if not turns:
        raise Refusal(refused("messages", "Give at least one message of the user."))
    return turns


def _instructions(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The texts of the messages that are instructions. Raises Refusal for other content."""
    return tuple(
        _instruction(message.get("content"), f"messages[{place}].content")
        for place, message in enumerate(messages)
        if message["role"] in _INSTRUCTIONS
    )


def _instruction(content: Any, parameter: str) -> str:
    text = _whole_text(content, parameter)
    if "\0" in text or not is_unicode(text):
        why = "An instruction is Unicode text without NUL characters and halves of surrogate pairs."
        raise Refusal(refused(parameter, why))
    return text


def _call_id(place: int, turn: Mapping[str, Any]) -> str:
    call_id = turn.get("tool_call_id")
    if not isinstance(call_id, str):
        why = "Give the id of the call whose result this is."
        raise Refusal(refused(f"messages[{place}].tool_call_id", why))
    return call_id


def _whole_text(content: Any, parameter: str) -> str:
    """The text of the new message, of which nothing may be lost."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise Refusal(refused(parameter, "Content is text, or a list of parts of the type text."))
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind != "text" or not isinstance(part.get("text"), str):
            why = "Only parts of the type text can be read here: no images, audio or files."
            raise Refusal(refused(parameter, why, code="unsupported_content"))
    return _text(content)


def _text(content: Any) -> str:
    """The text of a turn of the history, as far as it has any."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _refuse_other_answers(body: Mapping[str, Any]) -> None:
    """Refuse what asks for another answer than one message of text."""
    unsupported = {
        "n": body.get("n") not in (None, 1),
        "logprobs": body.get("logprobs") not in (None, False),
        "top_logprobs": body.get("top_logprobs") not in (None, 0),
        "audio": body.get("audio") is not None,
        "modalities": body.get("modalities") not in (None, ["text"]),
        "functions": bool(body.get("functions")) and body.get("function_call") != "none",
    }
    for parameter, is_wanted in unsupported.items():
        if is_wanted:
            why = f"{parameter} is not supported here as it was sent. Leave it out."
            raise Refusal(refused(parameter, why, code="unsupported_parameter"))
