"""Recall: the memories of an agent about a user for a question, with hybrid ranking and a gate.

`evidence` reads sentence vectors, words and neighbouring turns in one round trip. `scoring` weighs
them. A gate decides how many of the best are returned, perhaps none. docs/measurements.md has the
measurements.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import numpy as np
from django.db.backends.utils import CursorWrapper
from django.utils.timezone import is_naive
from pgvector import Vector

from memory.arguments import id_argument, uuid_argument, vector_argument
from memory.conversations.metadata import narrowed_by_metadata
from memory.embedding.embedder import embed, model_version
from memory.exceptions import InvalidArgument
from memory.models import Message
from memory.recall.evidence import Evidence, Exclusion, Known, KnownFact, Text, gather
from memory.recall.policy import DEFAULT_POLICY, GATES, NO_WEIGHTS, GateFeatures, RecallPolicy
from memory.recall.queries import LIMITS, Strategy
from memory.recall.query_analysis import Question
from memory.recall.scoring import (
    NEAR_QUESTION_COST,
    PRIOR_MESSAGES,
    Found,
    Ranking,
    rank,
    weigh_words,
)
from memory.scopes import scope_number
from tenants import traces
from tenants.context import asynchronous, known_tenant, tenant_connection
from tenants.metrics import counter, histogram

RECALLS: Final = counter(
    "konstruct_recalls_total",
    "Searches of memory for a question, by outcome: with results, or all results were left out.",
    outcome=("found", "abstained"),
)
RECALL_SECONDS: Final = histogram(
    "konstruct_recall_seconds", "How long a recall took, with the embedding of the question."
)
# Maximum number of omitted messages in the result.
MAX_CUT = 10
# The strategies that this process has found for large scopes. They expire, because the right
# strategy changes as scopes grow; a missing one costs another round trip, or two.
MAX_LARGE_SCOPES = 100_000
LARGE_SCOPES_SECONDS = 3600
_large_scopes: OrderedDict[tuple[UUID, int, int], Strategy] = OrderedDict()
Reason = Literal[
    "excluded",
    "excluded: corrected fact",
    "excluded: message",
    "asks the same",
    "below the gate",
    "over top_k",
    "over the budget",
    "given as a fact",
]
# A message is returned beside its fact if its nearest sentence is nearer to the question by this
# difference. benchmarks/facts/recall_with_facts.py: at .1 prompts have 7 % fewer words than at 0,
# at 2 only 3 % fewer than at .1.
NEARER_THAN_FACT = 0.1


@dataclass(frozen=True, slots=True)
class AdjacentTurn:
    """A turn beside a hit."""

    message_id: UUID
    role: str
    name: str
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Hit:
    """A found message."""

    message_id: UUID
    external_id: str | None
    thread_id: str
    role: str
    name: str
    content: str
    created_at: datetime
    score: float
    """Of the ranking; comparable within one recall only."""
    probability: float
    """That it is relevant, calibrated."""
    gate_value: float
    """The value that the thresholds of the policy are compared with."""
    channels: dict[str, float]
    """The value of each sign, before its weight."""
    metadata: dict[str, Any] | None
    """Of the message; None where they are too large to be included, and must be read by id."""
    neighbours: tuple[AdjacentTurn, ...] = ()
    """The turns around it, oldest first, if the policy asks for them."""
    excluded: tuple[Exclusion, ...] = ()
    """Its words that are excluded from recall. `content` has "…" for them."""


@dataclass(frozen=True, slots=True)
class FactHit:
    """A found fact. It replaces the messages with its evidence."""

    memory_id: UUID
    content: str
    score: float
    """Of the ranking: that of the best message that it rests on."""
    probability: float
    similarity: float
    """The cosine between the question and the fact."""
    quote: str
    """The words of the best message that it rests on."""
    said_at: datetime
    """When that message was sent."""
    message_ids: tuple[UUID, ...]
    """The messages that it rests on."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A found message that is left out."""

    message_id: UUID
    reason: Reason
    score: float
    probability: float
    gate_value: float
    channels: dict[str, float]
    excluded: tuple[Exclusion, ...] = ()
    """Why the message, or words of it, are excluded from recall."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The result of a recall, best first, with the scores of each memory."""

    query: str
    hits: tuple[Hit, ...]
    """The messages, also those that a fact rests on."""
    cut: tuple[Cut, ...]
    """The best omitted messages, with the reason."""
    abstained: bool
    """Something was found, and the gate held all of it back, or nothing was there."""
    embedding_model: str
    milliseconds: float
    """Without the embedding of the query."""
    embedding_milliseconds: float
    """Of the query; 0 if its vector was given."""
    facts: tuple[FactHit, ...] = ()
    """The facts with the content of some hits, each once."""

    @property
    def ranking(self) -> list[Hit | FactHit]:
        """Return the facts, and the messages that no fact replaces, as one list, best first."""
        replaced = {message_id for fact in self.facts for message_id in fact.message_ids}
        facts = list(self.facts)
        ranked: list[Hit | FactHit] = []
        for hit in self.hits:
            ranked += [fact for fact in facts if hit.message_id in fact.message_ids]
            facts = [fact for fact in facts if hit.message_id not in fact.message_ids]
            if hit.message_id not in replaced:
                ranked.append(hit)
        return ranked

    def trace(self, injected: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the recall as JSON, for a RecallEvent.

        Args:
            injected: the memories in the prompt, verbatim; by default every hit's content.
        """
        return {
            "query": self.query,
            "hits": [
                {
                    name: value
                    for name, value in _jsonable(asdict(hit)).items()
                    if name != "metadata"
                }
                for hit in self.hits
            ],
            "cut": [_jsonable(asdict(cut)) for cut in self.cut],
            "injected": list(injected) if injected is not None else [h.content for h in self.hits],
            "abstained": self.abstained,
            "embedding_model": self.embedding_model,
            "milliseconds": self.milliseconds,
        }


@traces.traced("recall")
def recall(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    query: str,
    *,
    policy: RecallPolicy | None = None,
    at: datetime | None = None,
    exclude: Iterable[UUID | str] = (),
    filters: Mapping[str, Any] | None = None,
    query_embedding: Sequence[float] | np.ndarray[Any, Any] | None = None,
) -> RecallResult:
    """Find earlier messages that answer `query`.

    With the query's vector it is one round trip to Postgres. A process' first recall of an hour in
    a large scope takes another one, in a very large scope two; so do the texts of hits if the
    policy requests the turns around them, or if the texts of the scope are too long to be read
    together.

    Args:
        policy: number of results, thresholds and features; by default DEFAULT_POLICY.
        at: only messages up to this time, with the facts that were valid then.
        exclude: ids of messages to leave out, such as those of the window.
        filters: conditions on the metadata of messages, see `memory.models.fact_filters`. Other
            messages do not affect the result. Another round trip.
        query_embedding: the vector of `query`, if the caller has it.

    Returns:
        At most `policy.top_k` messages, best first, each once; and the facts that some of them
        state. Messages that are excluded from recall are among the `cut`.

    Raises:
        InvalidArgument: a value is invalid; the message names it.
        UnknownTenant: no such tenant.
    """
    policy = policy or DEFAULT_POLICY
    agent, user = uuid_argument("agent_id", agent_id), id_argument("user_id", user_id)
    if not isinstance(query, str):
        raise InvalidArgument(f"query={query!r} is not text")
    if at is not None and is_naive(at):
        raise InvalidArgument(f"at={at} has no time zone")
    shown = [uuid_argument("exclude", message_id) for message_id in exclude]

    started = time.perf_counter()
    model = model_version()
    if query_embedding is None:
        vector = embed([query])[0]
    else:
        vector = vector_argument("query_embedding", query_embedding)
    embedded = time.perf_counter()

    question = Question.of(query)
    weights = NO_WEIGHTS if policy.mode == "vector" else policy.weights
    values = {
        **LIMITS,
        "agent": agent,
        "user": user,
        "scope": scope_number(agent, user),
        "model": model,
        "vector": Vector(vector),
        "terms": question.terms,
        "prior": PRIOR_MESSAGES,
        "at": at,
        "among": None,
        "numbers": None,
        "neighbours": policy.neighbours,
    }
    with (
        known_tenant(tenant_id, reads_only=True) as tenant,
        tenant_connection().prepared_cursor() as cursor,
    ):
        values["tenant"] = tenant
        if filters:
            said = narrowed_by_metadata(Message.objects.of(tenant, agent, user), filters)
            among = dict(said.values_list("pk", "number"))
            values |= {"among": list(among), "numbers": list(among.values())}
        evidence = _gather(cursor, values)
        turns = evidence.turns
        words = weigh_words(turns, question, weights)
        known = evidence.known()
        excluded: dict[UUID, Reason] = {
            **{message_id: _why_excluded(known, message_id) for message_id in known.excluded},
            **dict.fromkeys(shown, "excluded"),
        }
        ranking = rank(
            turns,
            words,
            evidence.pieces(),
            weights,
            echoes_last=policy.gate,
            limit=policy.top_k + MAX_CUT + len(excluded),
            known=known,
        )
        kept, cut = _decide(ranking, policy, excluded, known, asks_when=question.asks_when)
        texts = evidence.texts({one.number: one.message_id for one, *_ in kept})
    # A message that was erased meanwhile has no text.
    kept = [each for each in kept if each[0].number in texts]
    hits = tuple(_hit(*each, texts[each[0].number], known, policy) for each in kept)
    traces.set_attributes(tenant_id=tenant, agent_id=agent, hits=len(hits))
    RECALLS.of(outcome="found" if hits else "abstained").inc()
    RECALL_SECONDS.of().observe(time.perf_counter() - started)
    return RecallResult(
        query=query,
        hits=hits,
        cut=cut,
        abstained=not hits,
        embedding_model=model,
        milliseconds=1000 * (time.perf_counter() - embedded),
        embedding_milliseconds=0.0 if query_embedding is not None else 1000 * (embedded - started),
        facts=_facts(kept, known, policy) if policy.uses_facts else (),
    )


arecall = asynchronous(recall)


def _gather(cursor: CursorWrapper, values: dict[str, Any]) -> Evidence:
    """Read the evidence; one round trip, except for an hour's first recall in a large scope."""
    key = (values["tenant"], values["scope"], int(time.monotonic() // LARGE_SCOPES_SECONDS))
    # At an earlier time, or among some messages, a large scope may be small.
    whole = values["at"] is None and values["among"] is None
    strategy = _large_scopes.get(key, Strategy.WHOLE) if whole else Strategy.WHOLE
    # Ends: the evidence of the last strategy always fits.
    while not (evidence := gather(cursor, values, strategy)).fits:
        strategy = Strategy(strategy + 1)
        if whole:
            _large_scopes[key] = strategy
            if len(_large_scopes) > MAX_LARGE_SCOPES:
                _large_scopes.popitem(last=False)
    return evidence


def _decide(
    ranking: Ranking,
    policy: RecallPolicy,
    excluded: Mapping[UUID, Reason],
    known: Known,
    *,
    asks_when: bool,
) -> tuple[list[tuple[Found, float, dict[str, float]]], tuple[Cut, ...]]:
    """Divide the found messages, best first, into returned and omitted ones."""
    gate = GATES[policy.mode]
    answers = [one for one in ranking.found if one.message_id not in excluded and not one.echo]
    best_score = max(map(_without_cost, answers), default=0.0)
    by_name = any(one.by_name for one in ranking.found)
    has_names = by_name or any(one.addressed for one in ranking.found)
    weighed = []
    for one in ranking.found:
        features = _features(
            one,
            ranking,
            best_score=best_score,
            asks_when=asks_when,
            by_name=by_name,
            has_names=has_names,
        )
        value = gate.value(features, one.fact if one.cited else None)
        weighed.append((one, value, _channels(one, features)))
    # The gate was fitted to the order without the cost.
    fitted = sorted(weighed, key=lambda each: (each[0].echo, -_without_cost(each[0])))
    is_open = not policy.gate or any(
        value >= policy.open_at
        for one, value, _ in fitted[: policy.top_k + len(excluded)]
        if one.message_id not in excluded and not one.echo
    )
    # An earlier question is no answer.
    has_answer = is_open and any(
        value >= policy.keep_at
        for one, value, _ in weighed
        if one.message_id not in excluded and not (one.echo or one.repeats_question)
    )
    kept: list[tuple[Found, float, dict[str, float]]] = []
    cut: list[Cut] = []
    for one, value, channels in weighed:
        reason: Reason | None = None
        if one.message_id in excluded:
            reason = excluded[one.message_id]
        elif policy.gate and (one.echo or (one.repeats_question and not has_answer)):
            reason = "asks the same"
        elif policy.gate and not (is_open and value >= policy.keep_at):
            reason = "below the gate"
        elif len(kept) == policy.top_k:
            reason = "over top_k"
        if reason is None:
            kept.append((one, value, channels))
        elif len(cut) < MAX_CUT:
            exclusions = tuple(known.exclusions.get(one.message_id, ()))
            probability = policy.probability(value, is_cited=one.cited)
            cut.append(
                Cut(one.message_id, reason, one.score, probability, value, channels, exclusions)
            )
    return kept, tuple(cut)


def _why_excluded(known: Known, message_id: UUID) -> Reason:
    whole = (each for each in known.exclusions[message_id] if each.start is None)
    is_of_fact = any(each.memory_id is not None for each in whole)
    return "excluded: corrected fact" if is_of_fact else "excluded: message"


def _facts(
    kept: Iterable[tuple[Found, float, dict[str, float]]], known: Known, policy: RecallPolicy
) -> tuple[FactHit, ...]:
    """Return the facts that replace messages: for each message the nearest fact with evidence in
    it.
    """
    nearest: dict[UUID, KnownFact] = {}
    for fact in known.facts:
        for quote in fact.quotes:
            nearest.setdefault(quote.message_id, fact)
    found: dict[UUID, FactHit] = {}
    for one, value, _ in kept:
        replacing = nearest.get(one.message_id)
        if (
            replacing is None
            or replacing.memory_id in found
            or replacing.cosine < one.cosine - NEARER_THAN_FACT
        ):
            continue
        quote = next(each for each in replacing.quotes if each.message_id == one.message_id)
        found[replacing.memory_id] = FactHit(
            memory_id=replacing.memory_id,
            content=replacing.content,
            score=one.score,
            probability=policy.probability(value, is_cited=one.cited),
            similarity=replacing.cosine,
            quote=quote.text,
            said_at=quote.said_at,
            message_ids=tuple(dict.fromkeys(each.message_id for each in replacing.quotes)),
        )
    return tuple(found.values())


def _features(
    one: Found,
    ranking: Ranking,
    *,
    best_score: float,
    asks_when: bool,
    by_name: bool,
    has_names: bool,
) -> GateFeatures:
    return GateFeatures(
        cosine=one.cosine,
        lexical=one.lexical,
        coverage=one.coverage,
        subject=_subject(one) if has_names else 0.0,
        words=math.log1p(one.words),
        time=float(asks_when and one.has_time),
        unknown=ranking.unknown,
        gap=max(0.0, best_score - _without_cost(one)),
        mean_cosine=ranking.mean_cosine,
        unknown_name=float(ranking.unknown_name),
        anonymous=float(not by_name),
        scarcity=math.log1p(PRIOR_MESSAGES / ranking.messages),
    )


def _without_cost(one: Found) -> float:
    """Return the score to which the gate was fitted."""
    return one.score + NEAR_QUESTION_COST * one.repeats_question - one.from_fact


def _subject(one: Found) -> float:
    return 1.0 if one.by_name or one.addressed else -1.0


def _channels(one: Found, features: GateFeatures) -> dict[str, float]:
    """Return all features that the ranking or the gate has used."""
    return {
        **features._asdict(),
        "session": one.session,
        "previous": one.previous,
        "following": one.following,
        **({"fact": one.fact} if one.cited else {}),
    }


def _hit(
    one: Found,
    value: float,
    channels: dict[str, float],
    text: Text,
    known: Known,
    policy: RecallPolicy,
) -> Hit:
    turns = [
        (UUID(message_id), role, name, content, datetime.fromisoformat(created_at))
        for message_id, role, name, content, created_at in text.neighbours or ()
    ]
    return Hit(
        message_id=one.message_id,
        external_id=text.external_id,
        thread_id=text.thread_id,
        role=text.role,
        name=text.name,
        content=known.without_excluded(one.message_id, text.content),
        created_at=one.created_at,
        score=one.score,
        probability=policy.probability(value, is_cited=one.cited),
        gate_value=value,
        channels=channels,
        metadata=text.metadata,
        neighbours=tuple(
            AdjacentTurn(
                message_id, role, name, known.without_excluded(message_id, content), created_at
            )
            for message_id, role, name, content, created_at in turns
            if not known.is_excluded(message_id)
        ),
        excluded=tuple(known.exclusions.get(one.message_id, ())),
    )


def _jsonable(value: Any) -> Any:
    """Return the value with ids and times as text."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
