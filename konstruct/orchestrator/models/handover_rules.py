"""Checks of an agent's handover fields: to whom it hands conversations, and on which phrases."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from konstruct.orchestrator.models import Agent

MOST_PHRASES = 100


def refuse_unknown_handovers(agent: "Agent") -> None:
    """Raise ValidationError for phrases that say nothing, and agents that there are not."""
    phrases = agent.hand_over_on
    if not isinstance(phrases, dict) or len(phrases) > MOST_PHRASES:
        raise ValidationError(
            {"hand_over_on": f"Give an object of at most {MOST_PHRASES} phrases with agents' ids."}
        )
    for field, given in (("hand_over_on", phrases), ("hand_back_on", agent.hand_back_on)):
        if any(not phrase.strip() or "\0" in phrase for phrase in given):
            raise ValidationError(
                {field: "Give phrases that say something, without NUL characters."}
            )
    _refuse_strangers(agent, "hands_to", agent.hands_to)
    _refuse_strangers(agent, "hand_over_on", phrases.values())
    agent.hand_over_on = {phrase: str(UUID(str(to))) for phrase, to in phrases.items()}


def _refuse_strangers(agent: "Agent", field: str, given: Iterable[Any]) -> None:
    """Raise ValidationError for what is no other agent of the tenant that we are in."""
    try:
        ids = {each if isinstance(each, UUID) else UUID(each) for each in given}
    except (ValueError, AttributeError, TypeError):
        raise ValidationError({field: "Give the ids of agents."}) from None
    if agent.pk in ids:
        raise ValidationError({field: "An agent cannot hand a conversation to itself."})
    known = set(type(agent)._default_manager.filter(pk__in=ids).values_list("pk", flat=True))
    if unknown := sorted(str(each) for each in ids - known):
        raise ValidationError({field: f"This tenant has no agent of the id {unknown[0]}."})
