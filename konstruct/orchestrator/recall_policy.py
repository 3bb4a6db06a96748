"""From an agent's fields to the policy that recall understands."""

from typing import Any, Protocol

from memory.exceptions import InvalidArgument
from memory.recall.policy import RecallPolicy, RecallWeights


class Remembering(Protocol):
    """What of an agent says how it recalls. None, and a weight that is not named: as measured."""

    recall_mode: Any
    recall_top_k: int | None
    recall_gate: bool
    recall_open_at: float | None
    recall_keep_at: float | None
    recall_neighbours: int | None
    recall_weights: Any


def recall_policy(agent: Remembering) -> RecallPolicy:
    """Return the agent's recall policy.

    Raises InvalidArgument, which names the value that cannot be.
    """
    if not isinstance(agent.recall_weights, dict):
        raise InvalidArgument(f'weights={agent.recall_weights!r} is no object like {{"time": 0.5}}')
    try:
        weights = RecallWeights(**agent.recall_weights)
    except TypeError:
        known = ", ".join(RecallWeights.__dataclass_fields__)
        raise InvalidArgument(
            f"weights={agent.recall_weights!r} names an unknown weight; known are {known}"
        ) from None
    given = {
        "top_k": agent.recall_top_k,
        "open_at": agent.recall_open_at,
        "keep_at": agent.recall_keep_at,
        "neighbours": agent.recall_neighbours,
    }
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return RecallPolicy(mode=agent.recall_mode, gate=agent.recall_gate, weights=weights, **chosen)
