"""The options of a request: the client's tools, sampling, and the form of the answer."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from konstruct.api.http.errors.problems import Refusal
from konstruct.interfaces.openai.errors import refused
from konstruct.llm.completions import storable_value
from konstruct.orchestrator.answer_limits import LENGTH_LIMITS

# As in OpenAI's API.
MOST_TOOLS: Final = 128
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_CHOICES: Final = ("none", "auto", "required")
_FORMATS: Final = ("text", "json_object", "json_schema")

# Sampling parameters, with OpenAI's ranges.
_NUMBERS: Final = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_INTEGERS: Final = {
    "seed": (-(2**63), 2**63 - 1),
    **dict.fromkeys(LENGTH_LIMITS, (1, 2**31 - 1)),
}
SAMPLING: Final = (*_NUMBERS, *_INTEGERS, "stop")
MAX_STOPS: Final = 4
MAX_STOP_CHARACTERS: Final = 1_000


def read_options(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request asks of the answer, in the same words. Raises Refusal."""
    options = {**_form(body.get("response_format")), **_sampling(body)}
    if wants_usage(body):
        # The language model is to report it at the end of its own stream.
        options["stream_options"] = {"include_usage": True}
    tools = _tools(body.get("tools"))
    choice = body.get("tool_choice")
    parallel = body.get("parallel_tool_calls")
    if not isinstance(parallel, bool | None):
        raise Refusal(refused("parallel_tool_calls", "This is true or false."))
    if not (choice is None or choice in _CHOICES or _kind(choice)):
        why = f"This is one of {', '.join(_CHOICES)}, or an object that names a tool."
        raise Refusal(refused("tool_choice", why))
    if tools and choice != "none":
        options["tools"] = tools
        if choice is not None:
            options["tool_choice"] = choice
        if parallel is not None:
            options["parallel_tool_calls"] = parallel
    stored: dict[str, Any] = storable_value(options)
    return stored


def bound_to_follow(options: Mapping[str, Any]) -> str | None:
    """Return the name of an option that the answer must follow, if there is one."""
    if "response_format" in options:
        return "response_format"
    return "tool_choice" if options.get("tool_choice") not in (None, "auto") else None


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Tell whether a stream is to end with the tokens that it took."""
    asked = body.get("stream_options")
    return (
        bool(body.get("stream"))
        and isinstance(asked, Mapping)
        and asked.get("include_usage") is True
    )


def _tools(tools: Any) -> list[Any]:
    if tools is None:
        return []
    if not isinstance(tools, list) or len(tools) > MOST_TOOLS:
        raise Refusal(refused("tools", f"This is a list of at most {MOST_TOOLS} tools."))
    for place, tool in enumerate(tools):
        if _kind(tool) != "function":
            why = "Only tools of the type function can be called here."
            raise Refusal(refused(f"tools[{place}].type", why, code="unsupported_parameter"))
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            why = "A function has a name of 1 to 64 letters, digits, underscores and dashes."
            raise Refusal(refused(f"tools[{place}].function.name", why))
    return tools


def _sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    """The sampling parameters of a request, without those that are null."""
    sent = {name: body[name] for name in SAMPLING if body.get(name) is not None}
    for name, value in sent.items():
        if name == "stop":
            _check_stop(value)
        elif name in _NUMBERS:
            _check_number(name, value, (int, float), *_NUMBERS[name])
        else:
            _check_number(name, value, (int,), *_INTEGERS[name])
    if all(name in sent for name in LENGTH_LIMITS):
        why = f"Send {LENGTH_LIMITS[0]} or {LENGTH_LIMITS[1]}, and not both."
        raise Refusal(refused(LENGTH_LIMITS[1], why))
    return sent


def _check_number(
    name: str, value: Any, types: tuple[type, ...], least: float, greatest: float
) -> None:
    kind = "a number" if float in types else "an integer"
    # bool is an int to Python; NaN is outside of every range.
    if type(value) not in types or not least <= value <= greatest:
        why = f"{name} is {kind} from {least} to {greatest}, not {json.dumps(value)[:50]}."
        raise Refusal(refused(name, why))


def _check_stop(value: Any) -> None:
    stops = value if isinstance(value, list) else [value]
    are_texts = all(
        isinstance(each, str) and 0 < len(each) <= MAX_STOP_CHARACTERS and "\0" not in each
        for each in stops
    )
    if not are_texts or not 0 < len(stops) <= MAX_STOPS:
        why = (
            f"stop is a text of 1 to {MAX_STOP_CHARACTERS:,} characters without NUL, or a list of "
            f"1 to {MAX_STOPS} of them."
        )
        raise Refusal(refused("stop", why))


def _form(asked: Any) -> dict[str, Any]:
    if asked is None:
        return {}
    kind = _kind(asked)
    if kind not in _FORMATS:
        why = f"This is an object whose type is one of {', '.join(_FORMATS)}."
        raise Refusal(refused("response_format", why))
    return {} if kind == "text" else {"response_format": asked}


def _kind(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else None
