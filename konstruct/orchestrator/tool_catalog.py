"""The tools that agents can have: their arguments, questions and effects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.arguments import is_blank, is_unicode
from memory.exceptions import InvalidArgument
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.context import required_tenant_id

MAX_FACT_CHARACTERS = 2000


class ToolRefused(Exception):
    """The tool cannot be called like this; the message is for the language model."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The agent, user and message of a tool call. A language model cannot change them."""

    agent_id: UUID
    user_id: str
    message_id: UUID


class RememberFact:
    """The tool that stores a fact about the user of the message, for the agent that answers.

    The user consents to each call. `parameters` is the JSON schema of its arguments.
    """

    name = "remember_fact"
    description = (
        "Remember a fact about the user for good. Use it only when the user asks for something to "
        "be remembered. The user is asked for consent first."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "fact": {
                "type": "string",
                "description": "The fact in one sentence that is clear by itself.",
            }
        },
        "required": ["fact"],
        "additionalProperties": False,
    }

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise ToolRefused unless the argument is a text of limited length."""
        unknown = sorted(set(arguments) - {"fact"})
        fact = arguments.get("fact")
        if unknown:
            raise ToolRefused(f"unknown argument {unknown[0]!r}; give `fact` alone")
        if not isinstance(fact, str) or is_blank(fact):
            raise ToolRefused(f"fact={fact!r} is blank; give one sentence")
        if len(fact) > MAX_FACT_CHARACTERS:
            raise ToolRefused(
                f"the fact has {len(fact)} characters, more than {MAX_FACT_CHARACTERS}"
            )
        if not is_unicode(fact) or "\0" in fact:
            raise ToolRefused("the fact holds half of a surrogate pair, or a NUL character")

    def question(self, arguments: Mapping[str, Any]) -> str:
        """Return the question to the user."""
        return f"May I remember this: “{arguments['fact'].strip()}”?"

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Run the tool in the caller's transaction; return the result for the language model."""
        try:
            fact = MemoryEntry(
                tenant_id=required_tenant_id(),
                agent_id=context.agent_id,
                user_id=context.user_id,
                content=arguments["fact"].strip(),
                metadata={"source": "consent", "message_id": str(context.message_id)},
            )
            stored = LongTermMemory().remember(fact)
        except InvalidArgument as error:
            raise ToolRefused(str(error)) from error
        return "Remembered." if stored.created else "This was known already."


TOOLS: Final = {RememberFact.name: RememberFact()}


def tool_descriptions(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the descriptions of these tools for a language model, in OpenAI's format."""
    return [
        function_tool(tool.name, tool.description, tool.parameters)
        for name in sorted(set(names))
        if (tool := TOOLS.get(name)) is not None
    ]


def function_tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in OpenAI's format. The parameters are the JSON schema of its arguments."""
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}
