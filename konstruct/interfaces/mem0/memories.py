"""Memories of mem0's clients: the facts that a filter finds, and adding facts.

    {"user_id": "alex", "metadata": {"topic": "food"}}          all conditions must hold
    {"AND": [{"user_id": "alex"}, {"run_id": "*"}]}             "*" is any value, but not null
    {"OR": [{"agent_id": "ada"}, {"user_id": {"in": ["a", "b"]}}]}
    {"user_id": "alex", "NOT": [{"categories": {"contains": "spam"}}]}

A NOT holds if none of its conditions holds. `ne` also matches facts without a value.
"""

import logging
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final, cast
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet
from django.utils import timezone

from konstruct.api.auth.authentication import Caller
from konstruct.llm.completions import LLMError
from konstruct.orchestrator import exceptions, language_models, models, usage
from konstruct.orchestrator.extraction import checks, runs
from konstruct.orchestrator.models.agents import UUID_TEXT
from memory import arguments, tasks
from memory.conversations.transcript import ImportedTurn, import_turns
from memory.exceptions import InvalidArgument
from memory.facts import Author, LongTermMemory, StoredFact, lifecycle
from memory.fields import digest
from memory.models import MemoryAttribute, MemoryEntry, Message, attributes
from memory.models.facts import SYSTEM, MemoryEntryQuerySet
from memory.text.sentences import estimated_pieces
from tenants import context, jobs, transaction

ENTITIES: Final = ("user_id", "agent_id", "app_id", "run_id")
# A fact has no column for these entities: they are values of its metadata.
IN_METADATA: Final = ("app_id", "run_id")
COMBINATIONS: Final = ("AND", "OR", "NOT")
WILDCARD: Final = "*"
# Each condition is a subquery, and each value of a list is a part of the statement.
MAX_CONDITIONS: Final = 32
MAX_VALUES: Final = 256
MAX_DEPTH: Final = 8
MAX_KEYWORD_CHARACTERS: Final = 512

_TIMES: Final = ("created_at", "updated_at", "timestamp")
_OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(ENTITIES, ("eq", "ne", "in")),
    **dict.fromkeys(_TIMES, ("eq", "ne", *attributes.RANGES)),
    "categories": ("eq", "ne", "in", *attributes.PARTS),
    "keywords": attributes.PARTS,
    "memory_ids": ("in",),
    "metadata": attributes.OPERATORS,
}
_COLUMNS: Final = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "timestamp": "valid_from",
    "keywords": "content",
    "memory_ids": "memory_id",
    "user_id": "user_id",
    "agent_id": "agent_id",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of facts. By default it matches every fact."""

    query: Q = field(default_factory=Q)
    conditions: int = 0
    """The number of its conditions."""
    users: frozenset[str] = frozenset()
    """The users that it names, for the access log."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The entities of every match, by their kind."""
    names_entity: bool = False
    """Whether it has a condition on a user, agent, app or run."""
    is_limited: bool = False
    """Whether every match belongs to a user, agent, app or run that it names."""


def combine(kind: str, parts: Sequence[Filter]) -> Filter:
    """Return the AND, OR or NOT of filters. An empty AND matches every fact."""
    join = operator.and_ if kind == "AND" else operator.or_
    query = reduce(join, (part.query for part in parts), Q())
    limited = [part.is_limited for part in parts]
    values = {name: value for part in parts for name, value in part.values.items()}
    return Filter(
        query=~query if kind == "NOT" else query,
        conditions=sum(part.conditions for part in parts),
        users=frozenset[str]().union(*(part.users for part in parts)),
        values=values if kind == "AND" else {},
        names_entity=any(part.names_entity for part in parts),
        is_limited=any(limited) if kind == "AND" else kind == "OR" and all(limited),
    )


def parse(filters: Any) -> Filter:
    """Parse filters.

    Raises:
        InvalidArgument: a filter is invalid; the message names it and the remedy.
    """
    parsed = _parse_object(filters, "filters", depth=1)
    _check_length("filters", parsed.conditions)
    return parsed


def require_entity(caller: Caller, filters: Filter) -> None:
    """Require a filter to name a user, agent, app or run, unless the key is bound.

    Raises:
        InvalidArgument: the filter names none.
    """
    if not caller.is_bound and not filters.names_entity:
        raise InvalidArgument(
            "The filters name no owner: add user_id, agent_id, app_id or run_id to filters,"
            ' such as {"user_id": "alex"}, or {"user_id": "*"} for all users.'
        )


def memories_of(
    caller: Caller, filters: Filter | None = None, *, expired: bool = False
) -> MemoryEntryQuerySet:
    """Return the caller's facts that match a filter, as a lazy query inside the tenant.

    Args:
        caller: a key that is bound to an agent or a user finds only their facts.
        filters: the filter; None: all facts.
        expired: whether to include facts that have expired or are not valid yet.
    """
    facts = MemoryEntry.objects.of_tenant(context.required_tenant_id())
    facts = facts.entries() if expired else facts.as_of()
    if filters is not None:
        named = filters.values
        if "user_id" in named:  # for the access log
            caller.named["user_id"] = named["user_id"]
        agent = _agents([named["agent_id"]]).first() if "agent_id" in named else None
        if agent is not None and caller.agent_id in (None, agent.pk):
            caller.named["agent_id"] = agent.pk
        facts = facts.filter(filters.query)
    return cast(MemoryEntryQuerySet, caller.rows(facts))


def parse_time(field: str, value: Any) -> datetime:
    """Parse a day, a time (UTC by default), or seconds since 1970.

    Raises:
        InvalidArgument: the value is none of these.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = datetime.fromisoformat(value)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        raise InvalidArgument(
            f"{field}={_abbreviated(value)} is not a time; give one like 2026-03-14T09:30:00Z, a"
            " day, or seconds since 1970"
        ) from None


def _parse_object(filters: Any, where: str, depth: int) -> Filter:
    if not isinstance(filters, Mapping):
        raise InvalidArgument(f"{where}={_abbreviated(filters)} is not an object")
    if depth > MAX_DEPTH:
        raise InvalidArgument(f"filters is nested deeper than {MAX_DEPTH} levels")
    parts = [part for name in filters for part in _parse_member(name, filters[name], depth)]
    return combine("AND", parts)


def _parse_member(name: str, value: Any, depth: int) -> Iterator[Filter]:
    where = f"filters[{name[:80]!r}]"
    if name in COMBINATIONS:
        # mem0 accepts a NOT of one condition without brackets.
        parts = [value] if name == "NOT" and isinstance(value, Mapping) else value
        if not isinstance(parts, list) or not parts:
            raise InvalidArgument(f"{where}={_abbreviated(value)} is not a list of conditions")
        _check_length(where, len(parts))
        inner = [_parse_object(part, where, depth + 1) for part in parts]
        if not all(part.conditions for part in inner):
            raise InvalidArgument(f"{where} holds an empty condition")
        yield combine(name, inner)
    elif name == "metadata":
        if not isinstance(value, Mapping) or not value:
            raise InvalidArgument(f"{where}={_abbreviated(value)} is not an object of values")
        for key, operand in value.items():
            attributes.parse_filters({key: {"exists": True}})
            yield from _parse_conditions(f"metadata.{key}", operand, _OPERATORS["metadata"])
    elif name in _OPERATORS:
        is_list = name == "categories" and isinstance(value, list)
        is_operator = isinstance(value, Mapping) and [*value] == ["in"]
        if is_list or (name == "memory_ids" and not is_operator):
            value = {"in": value}
        elif name == "keywords" and isinstance(value, str):
            value = {"icontains": value}
        yield from _parse_conditions(name, value, _OPERATORS[name])
    else:
        known = ", ".join((*COMBINATIONS, *_OPERATORS))
        raise InvalidArgument(
            f"filters knows no field {name[:80]!r}; use one of: {known}. Put your own fields under"
            " metadata"
        )


def _parse_conditions(field: str, value: Any, operators: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the conditions on a field: equality without an operator, else one per operator."""
    operands_by_name = value if isinstance(value, Mapping) else {"eq": value}
    where = f"filters[{field[:80]!r}]"
    if not operands_by_name:
        raise InvalidArgument(f"{where} is empty: it has no condition")
    for name, operand in operands_by_name.items():
        if name == "eq" and operand == WILDCARD and operators[0] == "eq":
            yield _condition(field, "any", [])
            continue
        if name not in operators:
            raise InvalidArgument(
                f"{where} knows no operator {name[:80]!r}; use one of: {', '.join(operators)}"
            )
        operands = operand if name == "in" else [operand]
        if not isinstance(operands, list):
            raise InvalidArgument(f"{where}={_abbreviated(operands)} is not a list")
        if len(operands) > MAX_VALUES:
            raise InvalidArgument(
                f"{where} has {len(operands)} values; at most {MAX_VALUES} can be"
            )
        yield _condition(field, name, [_parse_value(field, name, item) for item in operands])


def _condition(field: str, operator: str, values: list[Any]) -> Filter:
    """Return the filter of one condition.

    Args:
        field: a key of `_OPERATORS`, or `metadata.` and a path.
        operator: one of the field, or `any` for the wildcard.
        values: ids as text, times, UUIDs or metadata values; an eq of None means "has no value".
    """
    is_entity, named = field in ENTITIES, [value for value in values if value is not None]
    return Filter(
        query=_query(field, operator, values),
        conditions=1,
        users=frozenset(named) if field == "user_id" else frozenset(),
        values={field: named[0]} if is_entity and operator == "eq" and named else {},
        names_entity=is_entity,
        is_limited=is_entity and operator in ("eq", "in") and None not in values,
    )


def _parse_value(field: str, name: str, value: Any) -> Any:
    if field == "keywords":
        text = arguments.text_argument(field, value)
        if not 0 < len(text) <= MAX_KEYWORD_CHARACTERS:
            raise InvalidArgument(
                f"filters[{field[:80]!r}] looks for {len(text)} characters; give 1 to"
                f" {MAX_KEYWORD_CHARACTERS}"
            )
        return text
    if field in ENTITIES:
        return None if value is None and name == "eq" else arguments.id_argument(field, value)
    if field == "memory_ids":
        return arguments.uuid_argument(field, value if isinstance(value, str) else repr(value)[:80])
    if field in _TIMES:
        return parse_time(field, value)
    path = field.removeprefix("metadata.")
    attributes.parse_filters({path: {"eq" if name == "in" else name: value}})
    return value


def _check_length(where: str, length: int) -> None:
    if length > MAX_CONDITIONS:
        raise InvalidArgument(f"{where} has {length} conditions; at most {MAX_CONDITIONS} can be")


def _abbreviated(value: Any) -> str:
    """Return the beginning of a value, for an error message."""
    if isinstance(value, dict | list):
        return f"{type(value).__name__} of {len(value)}"
    return ascii(value)[:80]


def _query(field: str, name: str, values: list[Any]) -> Q:
    if name == "ne":
        return ~_query(field, "eq", values)
    if field not in _COLUMNS:
        if name == "any" or (field in IN_METADATA and values == [None]):
            operand: dict[str, Any] = {"exists": name == "any"}
        else:
            operand = {"in": values} if name in ("eq", "in") else {name: values[0]}
        (parsed,) = attributes.parse_filters({field.removeprefix("metadata."): operand})
        return attributes.fulfilling(parsed, MemoryAttribute, "memory_id")
    column = _COLUMNS[field]
    if name == "any" or values == [None]:
        return Q(**{f"{column}__isnull": name != "any"})
    if field == "agent_id":
        return Q(agent_id__in=_agents(values).values("pk"))
    if name in ("eq", "in"):
        return Q(**{f"{column}__in": values})
    return Q(**{f"{column}__{name}": values[0]})


def _agents(names_or_ids: Iterable[str]) -> QuerySet[models.Agent]:
    """Return the agents with these names or ids."""
    ids = {text for text in names_or_ids if UUID_TEXT.fullmatch(text)}
    return models.Agent.objects.filter(Q(pk__in=ids) | Q(name__in={*names_or_ids} - ids)).order_by()


# --- Adding ---------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 20
# The conversation of a request without a run_id.
THREAD: Final = "mem0"
NO_MODEL: Final = (
    "No language model is configured, so the users' texts are kept unchanged. Send infer=false,"
    " and the text that you want kept."
)
NO_ANSWER: Final = (
    "The language model returned no valid list of facts, so the users' texts are kept unchanged."
)
LIMIT_REACHED: Final = (
    "The agent has used its tokens for facts of today, so the users' texts are kept unchanged."
)


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be stored as a fact, and the role of its author."""

    content: str
    role: str = "user"
    extracted: checks.AcceptedCandidate | None = None
    """The candidate of the language model that the text is."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The agent and the user of new facts."""

    agent_id: UUID | None
    user_id: str | None


def find_owner(caller: Caller, fields: dict[str, Any]) -> Owner:
    """Return the owner of the facts that a request adds.

    A bound key's own agent and user are the default.

    Args:
        caller: the caller.
        fields: validated fields, with all of ENTITIES.

    Raises:
        OutsideOfKey, AgentNotFound: the key is bound to another user or agent, or there is no such
            agent.
        InvalidArgument: the request names no user or agent.
    """
    named = {"user_id": fields["user_id"], "agent": fields["agent_id"]}
    named = {name: value for name, value in named.items() if value is not None}
    owner = Owner(caller.agent_id_in(named), caller.user_id_in(named))
    if owner.agent_id is None and owner.user_id is None:
        entities = " and ".join(entity for entity in ENTITIES if fields[entity] is not None)
        raise InvalidArgument(
            f"a memory of {entities} alone would be every user's; name user_id or agent_id with it"
            if entities
            else "the memory has no owner; name user_id or agent_id"
        )
    return owner


def store_texts(
    texts: Sequence[Text],
    owner: Owner,
    fields: dict[str, Any],
    author: Author,
    seen: dict[str, str] | None,
) -> list[StoredFact]:
    """Store each text as a fact. A fact with the same text only takes the metadata.

    An extracted text ends the fact that has another value of its slot, as in an extraction run.
    """
    times = {"valid_from": fields.get("timestamp"), "expires_at": fields.get("expiration_date")}
    times = {name: time for name, time in times.items() if time is not None}
    entries = []
    for text in texts:
        extracted: dict[str, Any] = {}
        if text.extracted is not None:
            names = {"subject", "slot", "value", "is_multi_valued"}
            extracted = text.extracted.candidate.model_dump(include=names)
            if text.extracted.valid_from is not None:
                extracted["valid_from"] = text.extracted.valid_from
        role = {} if text.role == "user" else {"role": text.role}
        entries.append(
            MemoryEntry(
                tenant_id=context.required_tenant_id(),
                agent_id=owner.agent_id,
                user_id=owner.user_id,
                content=text.content,
                metadata={**role, **metadata_of(fields)},
                **times | extracted,
            )
        )
    # As the platform: another value of the slot may end what was extracted.
    author = replace(SYSTEM, owns_proposal=author.owns_proposal)
    with usage.admit_memories(len(texts)):
        stored = LongTermMemory().remember_all(entries, author=author, since=seen)
    for text, fact in zip(texts, stored, strict=True):
        if text.extracted is not None:
            former = text.extracted.supersedes
            lifecycle.supersede_current_value(fact.memory_id, former.id if former else None)
    return stored


def metadata_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a request's facts, with the app and the run that it names."""
    entities = {name: fields[name] for name in IN_METADATA if fields[name] is not None}
    return {**fields["metadata"], **entities}


def existing_facts(first: UUID, texts: Sequence[Text], owner: Owner) -> list[UUID]:
    """Return the ids of the owner's facts with these texts, and of `first`, oldest first."""
    facts = MemoryEntry.objects.of_tenant(context.required_tenant_id()).as_of()
    facts = facts.filter(agent_id=owner.agent_id, user_id=owner.user_id)
    same_text = Q(content_digest__in={digest(text.content) for text in texts})
    found = facts.filter(same_text | Q(memory_id=first))
    return [*found.order_by("created_at").values_list("memory_id", flat=True)]


class NotExtracted(Exception):
    """No facts were extracted; the message says why, and is shown to the client."""


def extract_facts(
    texts: Sequence[Text], owner: Owner, *, requested_by: str, said_at: datetime | None
) -> runs.UnsavedExtraction:
    """Ask the language model for the facts of a conversation.

    It may take `TIMEOUT_SECONDS`: do not call it in a transaction.

    Raises:
        NotExtracted: no language model, no tokens left for today, or no valid answer.
        Busy: the tenant had no free slot for SLOT_TIMEOUT_SECONDS.
    """
    agent = models.Agent.objects.filter(pk=owner.agent_id).first() if owner.agent_id else None
    if not language_models.has_language_model(agent):
        raise NotExtracted(NO_MODEL)
    moment = said_at or timezone.now()
    messages = [
        Message(role=text.role, content=text.content, created_at=moment, user_id="")
        for text in texts
    ]
    try:
        return runs.extract_unsaved_messages(
            agent or models.Agent(id=uuid4(), name="mem0", model_tier=models.ModelTier.FAST),
            owner.user_id or "",
            messages,
            requested_by=requested_by,
            timeout=TIMEOUT_SECONDS,
        )
    except exceptions.ExtractionLimitReached as error:
        raise NotExtracted(LIMIT_REACHED) from error
    except (LLMError, exceptions.ExtractionFailed) as error:
        logger.warning("No facts were extracted: %s", error)
        raise NotExtracted(NO_ANSWER) from error


def record_run(
    answered: runs.UnsavedExtraction,
    texts: Sequence[Text],
    owner: Owner,
    fields: dict[str, Any],
    seen: dict[str, str] | None,
) -> list[StoredFact]:
    """Write the texts into the transcript, and record the facts that rest on them.

    Call it in a transaction.

    Args:
        answered: of `extract_facts`.
        texts: the conversation.
        owner: an agent and a user.
        fields: validated fields of the request.
        seen: the user, as `hold_people` returned it before the model was asked.

    Returns:
        The facts that are active now. Others may wait for a review.
    """
    if owner.agent_id is None or owner.user_id is None:
        raise InvalidArgument("the facts of a run have an agent and a user")
    tenant_id = context.required_tenant_id()
    with usage.admit_memories(sum(estimated_pieces(text.content) for text in texts)):
        imported = import_turns(
            tenant_id,
            [
                ImportedTurn(
                    # A request that is sent again has other messages, or an Idempotency-Key.
                    external_id=f"mem0:{answered.run.id}:{position}",
                    agent_id=owner.agent_id,
                    user_id=owner.user_id,
                    thread_id=fields["run_id"] or THREAD,
                    role=text.role,
                    content=text.content,
                    created_at=message.created_at,
                )
                for position, (text, message) in enumerate(
                    zip(texts, answered.batch.messages, strict=True)
                )
            ],
            seen=seen,
        )
    transaction.on_commit(lambda: jobs.enqueue_task(tasks.embed_and_store, str(tenant_id)))
    ids = [turn.message.pk for turn in imported]
    rows = Message.objects.in_bulk(ids)
    agent = models.Agent.objects.get(pk=owner.agent_id)
    values: dict[str, Any] = {"metadata": metadata_of(fields)}
    if fields.get("expiration_date") is not None:
        values["expires_at"] = fields["expiration_date"]
    run = runs.record_unsaved_extraction(answered, agent, [rows[pk] for pk in ids], **values)
    recorded = {
        UUID(candidate["memory_id"]): candidate["outcome"]
        for candidate in run.candidates
        if "memory_id" in candidate
    }
    active = MemoryEntry.objects.of_tenant(tenant_id).as_of().filter(pk__in=recorded)
    found = set(active.values_list("pk", flat=True))
    return [
        StoredFact(pk, created=outcome == "active")
        for pk, outcome in recorded.items()
        if pk in found
    ]
