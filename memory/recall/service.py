"""Recall: the memories of an agent about a user for a question, with hybrid ranking and a gate.

`evidence` reads sentence vectors, words and neighbouring turns. `scoring` weighs
them. A gate decides how many of the best are returned, perhaps none. docs/measurements.md has the
measurements.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import numpy as np
from django.utils.timezone import is_naive
from pgvector import Vector

from memory import conf, exceptions, models
from memory.arguments import id_argument, uuid_argument, vector_argument
from memory.conversations.transcript import filter_by_metadata
from memory.embedding.embedder import embed, model_files, model_version
from memory.models.recall import scope_number
from memory.recall import scoring
from memory.recall.evidence import Evidence, Exclusion, FactsAndExclusions, Text, read_evidence
from memory.recall.policy import NO_WEIGHTS, GateFeatures, RecallPolicy, constants_of
from memory.recall.queries import LIMITS, PLAN_SETTINGS, Strategy
from memory.text.changes import Statement, newer_first, replacements
from memory.text.lexical import latin_by_tag
from tenants import context, metrics, traces
from tenants.audit.people import NO_LOCALE, Locale, locales_of

RECALLS: Final = metrics.counter(
    "konstruct_recalls_total",
    "Recalls, by outcome: with results, or all results were left out.",
    outcome=("found", "abstained"),
)
RECALL_SECONDS: Final = metrics.histogram(
    "konstruct_recall_seconds", "How long a recall took, with the embedding of the question."
)
# Maximum number of omitted messages in the result.
MAX_CUT = 10
# The strategies that this process has found for large scopes. They expire, because the right
# strategy changes as scopes grow; a missing one costs another statement, or two.
MAX_LARGE_SCOPES = 100_000
LARGE_SCOPES_SECONDS = 3600
_large_scopes: OrderedDict[tuple[UUID, int, int], Strategy] = OrderedDict()
# Stored recall events have the positions of these reasons: append new ones.
Reason = Literal[
    "excluded",
    "excluded: corrected fact",
    "excluded: message",
    "asks the same",
    "below the gate",
    "over top_k",
    "same text",
    "over the budget",
    "given as a fact",
    "below the reranker's minimum",
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
    """The score of the ranking, comparable within one recall only."""
    probability: float
    """The calibrated probability that it is relevant."""
    gate_value: float
    """The value that the thresholds of the policy are compared with."""
    channels: dict[str, float]
    """The value of each feature, before its weight."""
    metadata: dict[str, Any] | None
    """Metadata of the message; None if they are too large to be read with the text."""
    neighbours: tuple[AdjacentTurn, ...] = ()
    """The turns around it, oldest first, if the policy asks for them."""
    excluded: tuple[Exclusion, ...] = ()
    """The excluded words of the message. `content` has "…" in their place."""
    replaced_by: UUID | None = None
    """A newer message of the user that says otherwise, see `memory.text.changes`."""


@dataclass(frozen=True, slots=True)
class FactHit:
    """A found fact. It replaces the messages with its evidence."""

    memory_id: UUID
    content: str
    score: float
    """The score of the best message of its evidence."""
    probability: float
    similarity: float
    """The cosine between the question and the fact."""
    quote: str
    """The words of the best message of its evidence."""
    said_at: datetime
    """When that message was sent."""
    message_ids: tuple[UUID, ...]
    """The messages of its evidence."""


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
    """The messages, including those that a fact replaces."""
    cut: tuple[Cut, ...]
    """The best omitted messages, at most MAX_CUT."""
    abstained: bool
    """There are no hits: nothing was found, or the gate left all of it out."""
    embedding_model: str
    milliseconds: float
    """Duration without the embedding of the query."""
    facts: tuple[FactHit, ...] = ()
    """The facts that replace hits, each once."""

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
            "hits": [_jsonable(hit) for hit in self.hits],
            "cut": [_jsonable(cut) for cut in self.cut],
            "injected": list(injected) if injected is not None else [h.content for h in self.hits],
            "abstained": self.abstained,
            "embedding_model": self.embedding_model,
            "milliseconds": self.milliseconds,
        }


@traces.span("recall")
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
    locale: Locale | None = None,
) -> RecallResult:
    """Find earlier messages that answer `query`.

    Args:
        policy: number of results, thresholds and features; by default those of `RecallPolicy()`.
        at: only messages up to this time, with the facts that were valid then.
        exclude: ids of messages to leave out, such as those of the window.
        filters: conditions on the metadata of messages, see `memory.models.attributes`. Other
            messages do not affect the result.
        query_embedding: the vector of `query`, if the caller has it.
        locale: of the user, if the caller has read it.

    Returns:
        At most `policy.top_k` messages, best first, each text once, and no answers of the built-in
        responder; and the facts that some of them state. Messages that are excluded from recall are
        among the `cut`.

    Raises:
        InvalidArgument: a value is invalid; the message names it.
        UnknownTenant: no such tenant.
    """
    policy = policy or RecallPolicy()
    agent, user = uuid_argument("agent_id", agent_id), id_argument("user_id", user_id)
    if not isinstance(query, str):
        raise exceptions.InvalidArgument(f"query={query!r} is not text")
    if at is not None and is_naive(at):
        raise exceptions.InvalidArgument(f"at={at} has no time zone")
    exclude_ids = [uuid_argument("exclude", message_id) for message_id in exclude]

    started = time.perf_counter()
    model = model_version()
    if query_embedding is None:
        vector = embed([query], is_query=True)[0]
    else:
        vector = vector_argument("query_embedding", query_embedding)
    embedded = time.perf_counter()

    values: dict[str, Any] = {
        **LIMITS,
        "agent": agent,
        "user": user,
        "scope": scope_number(agent, user),
        "model": model,
        "vector": Vector(vector),
        "prior": scoring.PRIOR_MESSAGES,
        "at": at,
        "among": None,
        "numbers": None,
        "neighbours": policy.neighbours,
    }
    with context.known_tenant(tenant_id, savepoint=False) as tenant:
        values["tenant"] = tenant
        locale = locales_of([user]).get(user, NO_LOCALE) if locale is None else locale
        values["zone"] = locale.zone(policy.time_zone)
        question = scoring.Question.of(query, latin_by_tag(policy.language or locale.language))
        values["terms"] = [*question.terms, *question.alternatives]
        if filters:
            matches = filter_by_metadata(models.Message.objects.of(tenant, agent, user), filters)
            numbers = dict(matches.values_list("pk", "number"))
            values |= {"among": list(numbers), "numbers": list(numbers.values())}
        with context.tenant_connection().local_settings(PLAN_SETTINGS):
            evidence = _read_evidence(values)
            hits, cut, facts = _select(evidence, query, question, policy, exclude_ids)
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
        facts=facts,
    )


arecall = context.asynchronous(recall)


def known_languages() -> frozenset[str]:
    """Return the codes of the languages that the embedding model knows."""
    return constants_of(model_files()).languages


def unknown_languages(query: str, user_id: str, language: str) -> tuple[str, ...]:
    """Return the codes of a query's languages that the embedding model does not know.

    Args:
        query: the text.
        user_id: the user, who may have a language.
        language: the language of the agent, which comes first, or "".
    """
    tag = language or locales_of([user_id]).get(user_id, NO_LOCALE).language
    return tuple(
        sorted(scoring.Question.of(query, latin_by_tag(tag)).languages - known_languages())
    )


def _read_evidence(values: dict[str, Any]) -> Evidence:
    """Read the turns; again by the next strategy in an hour's first recall in a large scope."""
    key = (values["tenant"], values["scope"], int(time.monotonic() // LARGE_SCOPES_SECONDS))
    # At an earlier time, or with filters, the messages of a large scope may be few.
    is_whole = values["at"] is None and values["among"] is None
    strategy = _large_scopes.get(key, Strategy.WHOLE) if is_whole else Strategy.WHOLE
    # Ends: the evidence of the last strategy always fits.
    while not (evidence := read_evidence(values, strategy)).fits:
        strategy = Strategy(strategy + 1)
        if is_whole:
            _large_scopes[key] = strategy
            if len(_large_scopes) > MAX_LARGE_SCOPES:
                _large_scopes.popitem(last=False)
    return evidence


def _select(
    evidence: Evidence,
    query: str,
    question: scoring.Question,
    policy: RecallPolicy,
    exclude_ids: Iterable[UUID],
) -> tuple[tuple[Hit, ...], tuple[Cut, ...], tuple[FactHit, ...]]:
    """Return the hits, the best omitted messages, and the facts that replace hits."""
    weights = NO_WEIGHTS if policy.mode == "vector" else policy.weights
    words = scoring.weigh_words(evidence.turns, question, weights)
    known = evidence.read_facts_and_exclusions()
    excluded: dict[UUID, Reason] = {
        **{message_id: _exclusion_reason(known, message_id) for message_id in known.excluded},
        **dict.fromkeys(exclude_ids, "excluded"),
    }
    ranking = scoring.rank(
        evidence.turns,
        words,
        evidence.read_pieces(),
        weights,
        echoes_last=policy.gate,
        limit=policy.top_k + MAX_CUT + len(excluded),
        cosine_weight=constants_of(model_files()).cosine_weight,
        known=known,
    )
    judged = _apply_gate(ranking, policy, excluded, question=question)
    wanted = (None, "below the gate") if any(reason is None for _, reason in judged) else ()
    read = [rated.message for rated, reason in judged if reason in wanted]
    texts = evidence.read_texts(
        {message.number: message.message_id for message in read[: policy.top_k + MAX_CUT]}
    )
    judged, replaced = _newer_first(judged, texts, query, question)
    kept: list[_RatedMessage] = []
    cut: list[Cut] = []
    seen: set[tuple[str, str]] = set()
    for rated, reason in judged:
        if reason is None:
            text = texts.get(rated.message.number)
            if len(kept) == policy.top_k:
                reason = "over top_k"
            elif text is None:  # erased meanwhile
                continue
            elif (text.role, text.content) in seen or (
                text.role == "assistant" and conf.RESPONDER_MARK in text.content
            ):
                reason = "same text"
            else:
                seen.add((text.role, text.content))
                kept.append(rated)
                continue
        if len(cut) < MAX_CUT:
            cut.append(_cut(rated, reason, known))
    hits = tuple(
        replace(
            _hit(rated, texts[rated.message.number], known),
            replaced_by=replaced.get(rated.message.message_id),
        )
        for rated in kept
    )
    return hits, tuple(cut), _replacing_facts(kept, known) if policy.uses_facts else ()


def _newer_first(
    judged: list["tuple[_RatedMessage, Reason | None]"],
    texts: Mapping[int, Text],
    query: str,
    question: scoring.Question,
) -> tuple[list["tuple[_RatedMessage, Reason | None]"], dict[UUID, UUID]]:
    """Move what replaces an older statement before it, and return the replacements by their ids.

    A newer statement passes the gate if the older one does.
    """
    found = [n for n, (rated, _) in enumerate(judged) if rated.message.number in texts]
    messages = [judged[n][0].message for n in found]
    statements = [
        Statement(texts[m.number].content, m.created_at, texts[m.number].role == "user")
        for m in messages
    ]
    pairs = replacements(statements, query, mentions_user=question.mentions_user)
    judged = list(judged)
    for older, newer in pairs.items():
        rated, reason = judged[found[newer]]
        if judged[found[older]][1] is None and reason == "below the gate":
            judged[found[newer]] = (rated, None)
    order = newer_first(
        range(len(judged)), {found[older]: found[newer] for older, newer in pairs.items()}
    )
    replaced = {messages[old].message_id: messages[new].message_id for old, new in pairs.items()}
    return [judged[n] for n in order], replaced


@dataclass(frozen=True, slots=True)
class _RatedMessage:
    """A scored message with its value of the gate."""

    message: scoring.ScoredMessage
    gate_value: float
    probability: float
    channels: dict[str, float]


def _apply_gate(
    ranking: scoring.Ranking,
    policy: RecallPolicy,
    excluded: Mapping[UUID, Reason],
    *,
    question: scoring.Question,
) -> list[tuple[_RatedMessage, Reason | None]]:
    """Return the scored messages, best first, each with the reason that it is omitted, if any."""
    all_rated = _rate(ranking, policy, excluded, question=question)
    # Neither an excluded message nor a repetition of the question opens the gate.
    answers = [
        rated
        for rated in all_rated
        if rated.message.message_id not in excluded and not rated.message.is_echo
    ]
    is_open = not policy.gate or _is_open(all_rated, policy, excluded)
    has_answer = is_open and any(
        rated.gate_value >= policy.keep_at
        for rated in answers
        if not rated.message.repeats_question
    )
    judged: list[tuple[_RatedMessage, Reason | None]] = []
    for rated in all_rated:
        message = rated.message
        reason: Reason | None = None
        if message.message_id in excluded:
            reason = excluded[message.message_id]
        elif policy.gate and (message.is_echo or (message.repeats_question and not has_answer)):
            reason = "asks the same"
        elif policy.gate and not (is_open and rated.gate_value >= policy.keep_at):
            reason = "below the gate"
        judged.append((rated, reason))
    return judged


def _cut(rated: _RatedMessage, reason: Reason, known: FactsAndExclusions) -> Cut:
    return Cut(
        rated.message.message_id,
        reason,
        rated.message.score,
        rated.probability,
        rated.gate_value,
        rated.channels,
        tuple(known.exclusions.get(rated.message.message_id, ())),
    )


def _rate(
    ranking: scoring.Ranking,
    policy: RecallPolicy,
    excluded: Mapping[UUID, Reason],
    *,
    question: scoring.Question,
) -> list[_RatedMessage]:
    """Return the messages of a ranking with their values of the gate, in the same order."""
    gate = constants_of(model_files()).gate(policy.mode, question.languages)
    best_score = max(
        (
            _gate_score(message)
            for message in ranking.best
            if message.message_id not in excluded and not message.is_echo
        ),
        default=0.0,
    )
    names_speaker = any(message.names_speaker for message in ranking.best)
    has_subject = names_speaker or any(message.is_addressed for message in ranking.best)
    all_rated = []
    for message in ranking.best:
        is_subject = message.names_speaker or message.is_addressed
        subject = 0.0 if not has_subject else 1.0 if is_subject else -1.0
        features = GateFeatures(
            cosine=message.cosine,
            lexical=message.lexical,
            coverage=message.coverage,
            subject=subject,
            words=math.log1p(message.words),
            time=float(question.asks_when and message.has_time),
            unknown=ranking.unknown,
            gap=max(0.0, best_score - _gate_score(message)),
            mean_cosine=ranking.mean_cosine,
            unknown_name=float(ranking.unknown_name),
            anonymous=float(not names_speaker),
            scarcity=math.log1p(scoring.PRIOR_MESSAGES / ranking.messages),
        )
        value = gate.value(features, message.fact if message.is_cited else None)
        probability = policy.probability(value, is_cited=message.is_cited)
        # All features that the ranking or the gate has used.
        channels = {
            **features._asdict(),
            **{name: getattr(message, name) for name in ("session", "previous", "following")},
            **({"fact": message.fact} if message.is_cited else {}),
        }
        all_rated.append(_RatedMessage(message, value, probability, channels))
    return all_rated


def _is_open(
    all_rated: Sequence[_RatedMessage], policy: RecallPolicy, excluded: Mapping[UUID, Reason]
) -> bool:
    """Return whether one of the first messages has the value at which the gate opens.

    The gate was fitted to the order by `_gate_score`.
    """
    in_gate_order = sorted(
        all_rated, key=lambda rated: (rated.message.is_echo, -_gate_score(rated.message))
    )
    return any(
        rated.gate_value >= policy.open_at
        for rated in in_gate_order[: policy.top_k + len(excluded)]
        if rated.message.message_id not in excluded and not rated.message.is_echo
    )


def _exclusion_reason(known: FactsAndExclusions, message_id: UUID) -> Reason:
    is_of_fact = any(
        exclusion.memory_id is not None
        for exclusion in known.exclusions[message_id]
        if exclusion.start is None
    )
    return "excluded: corrected fact" if is_of_fact else "excluded: message"


def _replacing_facts(
    kept: Iterable[_RatedMessage], known: FactsAndExclusions
) -> tuple[FactHit, ...]:
    """Return the facts that replace messages: for each message the nearest fact with evidence in
    it.
    """
    # Of several facts the nearest, which comes last here.
    nearest = {quote.message_id: fact for fact in reversed(known.facts) for quote in fact.quotes}
    hits: dict[UUID, FactHit] = {}
    for rated in kept:
        message = rated.message
        replacing = nearest.get(message.message_id)
        if (
            replacing is None
            or replacing.memory_id in hits
            or replacing.cosine < message.cosine - NEARER_THAN_FACT
        ):
            continue
        quote = next(quote for quote in replacing.quotes if quote.message_id == message.message_id)
        hits[replacing.memory_id] = FactHit(
            memory_id=replacing.memory_id,
            content=replacing.content,
            score=message.score,
            probability=rated.probability,
            similarity=replacing.cosine,
            quote=quote.text,
            said_at=quote.said_at,
            message_ids=tuple(dict.fromkeys(quote.message_id for quote in replacing.quotes)),
        )
    return tuple(hits.values())


def _gate_score(message: scoring.ScoredMessage) -> float:
    """Return the score to which the gate was fitted: without costs and facts."""
    return message.score + scoring.NEAR_QUESTION_COST * message.repeats_question - message.from_fact


def _hit(rated: _RatedMessage, text: Text, known: FactsAndExclusions) -> Hit:
    message = rated.message
    turns = [
        AdjacentTurn(UUID(message_id), role, name, content, datetime.fromisoformat(created_at))
        for message_id, role, name, content, created_at in text.neighbours or ()
    ]
    return Hit(
        message_id=message.message_id,
        external_id=text.external_id,
        thread_id=text.thread_id,
        role=text.role,
        name=text.name,
        content=known.without_excluded(message.message_id, text.content),
        created_at=message.created_at,
        score=message.score,
        probability=rated.probability,
        gate_value=rated.gate_value,
        channels=rated.channels,
        metadata=text.metadata,
        neighbours=tuple(
            replace(turn, content=known.without_excluded(turn.message_id, turn.content))
            for turn in turns
            if not known.is_excluded(turn.message_id)
        ),
        excluded=tuple(known.exclusions.get(message.message_id, ())),
    )


def _jsonable(value: Any) -> Any:
    """Return the value with ids and times as text; a Hit without `metadata` and `replaced_by`."""
    if is_dataclass(value):
        names = (field.name for field in fields(value))
        return {
            name: _jsonable(getattr(value, name))
            for name in names
            if name not in ("metadata", "replaced_by")
        }
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
