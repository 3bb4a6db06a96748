"""Builds what a language model is given. Pure: no Django, no I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memory.context.chat import ChatMessage, chat_sections, flattened
from memory.context.lines import item

TRANSPARENCY_CLAUSE = (
    "You are an AI assistant. If someone asks whether you are a human or an AI, say plainly that "
    "you are an AI, and never claim to be a human being."
)


HANDED_OVER_CLAUSE = (
    "This conversation was handed over to you, {name}: others have answered in it before. What they"
    " said begins with their names. Answer as yourself."
)
SEVERAL_SPEAKERS_CLAUSE = (
    "Several people speak in this thread. What they say begins with their names. The message to"
    " answer is from {speaker}."
)


class Persona(Protocol):
    """What of an agent its system prompt is made of."""

    @property
    def system_prompt(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def persona(self) -> str: ...


def build_system_prompt(agent: Persona, *clauses: str) -> str:
    """Join the agent's system prompt, identity, persona and the AI-transparency clause.

    Then what is to be said of this conversation, if anything is.
    """
    parts = (agent.system_prompt, agent.identity, agent.persona, TRANSPARENCY_CLAUSE, *clauses)
    return "\n\n".join(part.strip() for part in parts if part and part.strip())


def build_messages_with_memory(
    agent: Persona,
    current_message: str,
    recent_messages: Sequence[Mapping[str, Any]],
    relevant_context: Sequence[str],
) -> list[ChatMessage]:
    """Build the list of messages for one completion, whole: nothing is cut to a budget here.

    In this order: the system prompt; one system message with the recalled lines, only if there are
    any; the window (`recent_messages`, oldest first) as alternating user and assistant turns; the
    current user message.
    """
    context = "\n".join(map(item, relevant_context))
    return flattened(
        chat_sections(build_system_prompt(agent), context, recent_messages, current_message)
    )
