"""What an agent remembers of a user, for a question: hybrid ranking, a gate, and the reasons.

Sentence vectors, words in their context, the conversation around, and the turns before and after
are weighed against each other in one statement (see ranking.py); the gate then decides how many of
the best are worth saying, none included (see gate.py). docs/recall.md has the measurements.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import numpy as np
from django.db import connection
from django.utils.timezone import is_naive

from memory.arguments import id_argument, uuid_argument, vector_argument
from memory.embeddings import embed, model_version
from memory.entering import known_tenant
from memory.exceptions import InvalidArgument
from memory.gate import GATES, Signs
from memory.policy import DEFAULT_POLICY, WEIGHT_NAMES, RecallPolicy
from memory.questions import Question
from memory.ranking import LIMITS, ranking_sql
from memory.scopes import scope_number
from memory.vectors import vector_literal
from tenants.context import asynchronous

# How many of those that were left out are told of.
MAX_CUT = 10
# Words are as rare as if so many other messages, without any of them, had been said before: in the
# first days of a conversation every word would be common, and nothing could be told from anything.
PRIOR_MESSAGES = 300
# Scopes that this process knows to be large; one that it has forgotten costs a round trip.
MAX_LARGE_SCOPES = 100_000
_large_scopes: set[tuple[UUID, int]] = set()
# Who asks the same again, in so many times the words and so many more, only asks: that answers
# nothing, however near the two questions are.
ECHO_WORDS = (2, 3)

Reason = Literal["excluded", "asks the same", "below the gate", "over top_k", "over the budget"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn beside a hit."""

    message_id: UUID
    role: str
    name: str
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found."""

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
    """That it is relevant, as the gate sees it."""
    channels: dict[str, float]
    """What each sign said, before its weight."""
    neighbours: tuple[Turn, ...] = ()
    """The turns around it, oldest first, if the policy asks for them."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A message that was found and left out."""

    message_id: UUID
    reason: Reason
    score: float
    probability: float
    channels: dict[str, float]


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer of a recall, best first, with what speaks for each."""

    query: str
    hits: tuple[Hit, ...]
    cut: tuple[Cut, ...]
    """The best of what was left out, and why."""
    abstained: bool
    """Something was found, and the gate held all of it back, or nothing was there."""
    embedding_model: str
    milliseconds: float
    """Without the embedding of the query."""
    embedding_milliseconds: float
    """Of the query; 0 if its vector was given."""

    def trace(self, injected: Sequence[str] | None = None) -> dict[str, Any]:
        """The recall as JSON, for a RecallEvent.

        Args:
            injected: what the language model was given, as given; by default every hit's content.
        """
        return {
            "query": self.query,
            "hits": [_jsonable(asdict(hit)) for hit in self.hits],
            "cut": [_jsonable(asdict(cut)) for cut in self.cut],
            "injected": list(injected) if injected is not None else [h.content for h in self.hits],
            "abstained": self.abstained,
            "embedding_model": self.embedding_model,
            "milliseconds": self.milliseconds,
        }


def recall(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    query: str,
    *,
    policy: RecallPolicy | None = None,
    at: datetime | None = None,
    exclude: Iterable[UUID | str] = (),
    query_embedding: Sequence[float] | np.ndarray[Any, Any] | None = None,
) -> RecallResult:
    """Find what was said before that answers `query`.

    Given the query's vector it is one round trip to Postgres, but for a process' first recall in a
    large scope, which takes two.

    Args:
        policy: how much, how sure, by which signs; by default DEFAULT_POLICY.
        at: only what had been said by then.
        exclude: ids of messages that are not wanted, such as those of the window.
        query_embedding: the vector of `query`, if the caller has it already.

    Returns:
        At most `policy.top_k` messages, best first, each once.

    Raises:
        InvalidArgument: a value that cannot be what it should be; the message names it.
        UnknownTenant: no such tenant.
    """
    policy = policy or DEFAULT_POLICY
    agent, user = uuid_argument("agent_id", agent_id), id_argument("user_id", user_id)
    if not isinstance(query, str):
        raise InvalidArgument(f"query={query!r} is not text")
    if at is not None and is_naive(at):
        raise InvalidArgument(f"at={at} has no time zone")
    excluded = [uuid_argument("exclude", message_id) for message_id in exclude]

    started = time.perf_counter()
    model = model_version()
    if query_embedding is None:
        vector = embed([query])[0]
    else:
        vector = vector_argument("query_embedding", query_embedding)
    embedded = time.perf_counter()

    question = Question.of(query)
    hybrid = policy.mode == "hybrid"
    weights = {name: getattr(policy.weights, name) if hybrid else 0.0 for name in WEIGHT_NAMES}
    if not question.asks_when:
        weights["time"] = 0.0
    values = {
        **LIMITS,
        **weights,
        "agent": agent,
        "user": user,
        "scope": scope_number(agent, user),
        "model": model,
        "vector": vector_literal(vector),
        "terms": question.terms,
        "prior": PRIOR_MESSAGES,
        "names": question.names,
        "names_user": question.names_user,
        "names_agent": question.names_agent,
        "said_terms": question.said_terms,
        "proper_names": question.proper_names,
        "is_question": question.is_question,
        "longest_echo": ECHO_WORDS[0] * question.words + ECHO_WORDS[1],
        "gate": policy.gate,
        "exclude": excluded,
        "at": at,
        "limit": policy.top_k + MAX_CUT + len(excluded),
        "neighbours": policy.neighbours,
    }
    with known_tenant(tenant_id) as tenant:
        rows = _ranked(tenant, {**values, "tenant": tenant})
    hits, cut = _decide(rows, policy, frozenset(excluded), asks_when=question.asks_when)
    return RecallResult(
        query=query,
        hits=hits,
        cut=cut,
        abstained=not hits,
        embedding_model=model,
        milliseconds=1000 * (time.perf_counter() - embedded),
        embedding_milliseconds=0.0 if query_embedding is not None else 1000 * (embedded - started),
    )


arecall = asynchronous(recall)


def _ranked(tenant: UUID, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The best of the scope, best first; one round trip, but for the first of a large scope."""
    key = (tenant, values["scope"])
    # As of an earlier moment a large scope may have been small.
    large = values["at"] is None and key in _large_scopes
    rows = _fetch(values, large=large)
    if not rows[0]["whole"]:
        if values["at"] is None:
            _large_scopes.add(key)
            if len(_large_scopes) > MAX_LARGE_SCOPES:
                _large_scopes.pop()
        rows = _fetch(values, large=True)
    return [row for row in rows if row["id"] is not None]


def _fetch(values: dict[str, Any], *, large: bool) -> list[dict[str, Any]]:
    statement = ranking_sql(
        large=large, until=values["at"] is not None, neighbours=values["neighbours"] > 0
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        columns = [column.name for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _decide(
    rows: Sequence[dict[str, Any]],
    policy: RecallPolicy,
    excluded: frozenset[UUID],
    *,
    asks_when: bool,
) -> tuple[tuple[Hit, ...], tuple[Cut, ...]]:
    """Part what was found, best first, into what is given and what is left out."""
    gate = GATES[policy.mode]
    answers = [row for row in rows if row["id"] not in excluded and not row["echo"]]
    best_score = max((row["score"] for row in answers), default=0.0)
    by_name = any(row["by_name"] for row in rows)
    names_anybody = by_name or any(row["addressed"] for row in rows)
    found = []
    for row in rows:
        signs = _signs(
            row,
            best_score=best_score,
            asks_when=asks_when,
            by_name=by_name,
            names_anybody=names_anybody,
        )
        found.append((row, gate.probability(signs), _channels(row, signs)))
    is_open = not policy.gate or any(
        probability >= policy.open_at
        for row, probability, _ in found[: policy.top_k + len(excluded)]
        if row["id"] not in excluded and not row["echo"]
    )
    hits: list[Hit] = []
    cut: list[Cut] = []
    for row, probability, channels in found:
        reason: Reason | None = None
        if row["id"] in excluded:
            reason = "excluded"
        elif policy.gate and row["echo"]:
            reason = "asks the same"
        elif policy.gate and not (is_open and probability >= policy.keep_at):
            reason = "below the gate"
        elif len(hits) == policy.top_k:
            reason = "over top_k"
        if reason is None:
            hits.append(_hit(row, probability, channels))
        elif len(cut) < MAX_CUT:
            cut.append(Cut(row["id"], reason, row["score"], probability, channels))
    return tuple(hits), tuple(cut)


def _signs(
    row: dict[str, Any],
    *,
    best_score: float,
    asks_when: bool,
    by_name: bool,
    names_anybody: bool,
) -> Signs:
    return Signs(
        cosine=row["cosine"],
        lexical=row["lexical"],
        coverage=row["coverage"],
        subject=_subject(row) if names_anybody else 0.0,
        words=math.log1p(row["words"]),
        time=float(asks_when and row["has_time"]),
        unknown=row["unknown"],
        gap=max(0.0, best_score - row["score"]),
        mean_cosine=row["mean_cosine"],
        unknown_name=float(row["unknown_name"]),
        anonymous=float(not by_name),
        scarcity=math.log1p(PRIOR_MESSAGES / row["messages"]),
    )


def _subject(row: dict[str, Any]) -> float:
    return 1.0 if row["by_name"] or row["addressed"] else -1.0


def _channels(row: dict[str, Any], signs: Signs) -> dict[str, float]:
    """Everything that was weighed, by the ranking or by the gate."""
    return {
        **signs._asdict(),
        "session": row["session_base"],
        "previous": row["previous"],
        "following": row["following"],
    }


def _hit(row: dict[str, Any], probability: float, channels: dict[str, float]) -> Hit:
    return Hit(
        message_id=row["id"],
        external_id=row["external_id"],
        thread_id=row["thread_id"],
        role=row["role"],
        name=row["name"],
        content=row["content"],
        created_at=row["created_at"],
        score=row["score"],
        probability=probability,
        channels=channels,
        neighbours=tuple(
            Turn(UUID(message_id), role, name, content, datetime.fromisoformat(created_at))
            for message_id, role, name, content, created_at in row["neighbours"] or ()
        ),
    )


def _jsonable(value: Any) -> Any:
    """The value with ids and times as text."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
