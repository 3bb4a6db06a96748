"""Reviewers' marks on recalled memories, and the tenant's calibration from them.

A mark changes the displayed probabilities, not the results of recall.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from memory.exceptions import NotRecalled
from memory.models import Message, PendingEmbedding, RecallEvent, RecallMark, Relevance
from memory.models.facts import Author
from memory.recall.policy import CALIBRATIONS, logistic, logit
from tenants import transaction
from tenants.context import fetch_all

# With fewer marks, the product's own calibration is used. benchmarks/recall/calibration.py: 10
# marks hardly move the mean towards the share of relevant memories, 50 do.
MIN_MARKS: Final = 50
# Only the newest marks are used.
MAX_MARKS: Final = 5000
# Of the shifts that fit the kinds in docs/measurements.md, from -0.5 to 0.5.
PRIOR_DEVIATION: Final = 0.5
NEWTON_STEPS: Final = 20

_COUNT: Final = """
SELECT round(least(greatest(probability, 0.001), 0.999)::numeric, 3)::float,
       count(*) FILTER (WHERE relevance = 'relevant'),
       count(*) FILTER (WHERE relevance = 'not_relevant')
FROM (
    SELECT probability, relevance FROM memory_recallmark WHERE relevance <> 'unsure'
    ORDER BY created_at DESC, id LIMIT %(most)s
) AS newest
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class TenantCalibration:
    """A tenant's shift of the product's probabilities, computed from its marks."""

    marks: int
    """Number of marks "relevant" or "not relevant"; at most MAX_MARKS."""
    shift: float = 0.0
    """Added to the logit of each probability; 0 with fewer than MIN_MARKS."""

    @property
    def is_own(self) -> bool:
        """Whether there are enough marks for a shift."""
        return self.marks >= MIN_MARKS

    @property
    def needed(self) -> int:
        """The number of marks from which there is a shift."""
        return MIN_MARKS

    def probability(self, entry: Mapping[str, Any]) -> float | None:
        """Return the probability of a memory by this calibration; None if the entry has none.

        Args:
            entry: a hit or a cut as a mapping, such as an entry of a RecallEvent.
        """
        probability = product_probability(entry)
        return None if probability is None else self.adjust(probability)

    def adjust(self, probability: float) -> float:
        """Return the probability by this calibration for one by the product's."""
        return logistic(logit(probability) + self.shift) if self.is_own else probability


def product_probability(entry: Mapping[str, Any]) -> float | None:
    """Return the probability of a memory by the product's calibration.

    An entry without a `gate_value` is older than calibrated probabilities.
    """
    probability: float | None = entry.get("probability")
    if probability is None or "gate_value" in entry:
        return probability
    is_cited = "fact" in entry.get("channels", {})
    return CALIBRATIONS["hybrid"].probability(probability, is_cited=is_cited)


def tenant_calibration() -> TenantCalibration:
    """Return the calibration of the current tenant. One query."""
    counts = fetch_all(_COUNT, {"most": MAX_MARKS})
    marks = sum(relevant + others for _, relevant, others in counts)
    return TenantCalibration(marks, fit_shift(counts) if marks >= MIN_MARKS else 0.0)


def fit_shift(
    counts: Iterable[tuple[float, int, int]], deviation: float = PRIOR_DEVIATION
) -> float:
    """Return the shift of logits under which the marks are most probable.

    Args:
        counts: probability, number of relevant memories, number of others.
        deviation: of the normal prior around 0; 0 for no prior.
    """
    observations = [(logit(p), relevant, relevant + others) for p, relevant, others in counts]
    precision = 1 / deviation**2 if deviation else 0.0
    shift = 0.0
    for _ in range(NEWTON_STEPS):
        gradient, curvature = -shift * precision, precision
        for start, relevant, number in observations:
            probability = logistic(start + shift)
            gradient += relevant - number * probability
            curvature += number * probability * (1 - probability)
        # A step is limited: without a prior it may be very large where marks agree.
        shift += max(-1.0, min(1.0, gradient / max(curvature, 1e-9)))
    return shift


def trace_of(reply_id: UUID) -> dict[str, Any] | None:
    """Return the trace of the recall for a reply, or None if there is none."""
    event: Any = RecallEvent.objects.filter(reply_id=reply_id).values().first()
    if event is None:
        pending = PendingEmbedding.objects.filter(message_id=reply_id)
        event = pending.values_list("recall_trace", flat=True).first()
    return event


def marks_of(reply_id: UUID) -> dict[str, RecallMark]:
    """Return the marks on the memories that were recalled for a reply, by the messages' ids."""
    return {str(mark.message_id): mark for mark in RecallMark.objects.filter(reply_id=reply_id)}


def mark_recalled(
    reply: Message, message_id: UUID, *, relevance: str, author: Author
) -> RecallMark:
    """Mark a memory that was recalled for a reply. It replaces the mark of another person.

    Args:
        reply: the reply of the current tenant.
        message_id: a message of the recall's hits or of those that were left out.
        relevance: one of Relevance.
        author: a person or a program.

    Raises:
        NotRecalled: the message was not recalled for the reply, or does not exist any more.
    """
    trace = trace_of(reply.pk) or {"hits": [], "cut": []}
    entries = (*trace["hits"], *trace["cut"])
    recalled = next(
        (entry for entry in entries if entry.get("message_id") == str(message_id)), None
    )
    probability = None if recalled is None else product_probability(recalled)
    with transaction.atomic():
        exists = Message.objects.filter(pk=message_id).exists()
        if probability is None or not exists:
            raise NotRecalled(f"The message {message_id} was not recalled for this reply.")
        mark, _ = RecallMark.objects.update_or_create(
            reply=reply,
            message_id=message_id,
            defaults={
                "agent_id": reply.agent_id,
                "user_id": reply.user_id,
                "relevance": Relevance(relevance),
                "probability": probability,
                "author_kind": author.kind,
                "author_id": author.id,
                "author_name": author.name,
                "created_at": timezone.now(),
            },
        )
    return mark
