"""Adding memories: the owner of new facts, and writing them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Q

from konstruct.api.auth.permissions import Caller
from konstruct.interfaces.mem0.filters import ENTITIES, IN_METADATA
from konstruct.orchestrator.agents import create_agent, find_agent
from konstruct.orchestrator.exceptions import AgentNameTaken, AgentNotFound
from konstruct.orchestrator.extraction.candidates import AcceptedCandidate
from konstruct.orchestrator.models.agents import UUID_TEXT
from konstruct.orchestrator.usage import admit_memories
from memory.exceptions import InvalidArgument
from memory.facts import Author, LongTermMemory, StoredFact
from memory.facts.lifecycle import supersede_current_value
from memory.fields import digest
from memory.models import MemoryEntry
from memory.models.facts import SYSTEM
from tenants.context import required_tenant_id


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be stored as a fact, and the role of its author."""

    content: str
    role: str = "user"
    extracted: AcceptedCandidate | None = None
    """The candidate of the language model that the text is."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The agent and the user of new facts."""

    agent_id: UUID | None
    user_id: str | None
    new_agent: str | None = None
    """The name of an agent that the request creates."""


def find_owner(caller: Caller, fields: dict[str, Any]) -> Owner:
    """Return the owner of the facts that a request adds.

    A bound key's own agent and user are the default. The owner has a `new_agent` if the tenant has
    no agent of that name, but not for a bound key, and not for a UUID.

    Args:
        caller: the caller.
        fields: validated fields, with all of ENTITIES.

    Raises:
        OutsideOfKey, AgentNotFound: the key is bound to another user or agent.
        InvalidArgument: the request names no user or agent.
    """
    user_id = caller.user_id if fields["user_id"] is None else caller.user(fields["user_id"])
    name = fields["agent_id"]
    if name is not None:
        try:
            return Owner(caller.agent(name).id, user_id)
        except AgentNotFound:
            if caller.is_bound or UUID_TEXT.fullmatch(name):
                raise
            return Owner(None, user_id, new_agent=name)
    if caller.agent_id is None and user_id is None:
        entities = " and ".join(entity for entity in ENTITIES if fields[entity] is not None)
        raise InvalidArgument(
            f"a memory of {entities} alone would be every user's; name user_id or agent_id with it"
            if entities
            else "the memory has no owner; name user_id or agent_id"
        )
    return Owner(caller.agent_id, user_id)


def create_new_agent(caller: Caller, owner: Owner) -> Owner:
    """Create the owner's new agent, if it has one. Without `new_agent` it existed already."""
    if owner.new_agent is None:
        return owner
    try:
        agent = create_agent(tenant_id=required_tenant_id(), name=owner.new_agent)
    except AgentNameTaken:  # a concurrent request created it
        return replace(owner, agent_id=find_agent(owner.new_agent).id, new_agent=None)
    caller.named["agent_id"] = agent.id
    return replace(owner, agent_id=agent.id)


def store_texts(
    texts: Sequence[Text], owner: Owner, fields: dict[str, Any], author: Author
) -> list[StoredFact]:
    """Store each text as a fact. A fact with the same text only takes the metadata.

    An extracted text ends the fact that has another value of its slot, as in an extraction run.
    """
    times = {"valid_from": fields.get("timestamp"), "expires_at": fields.get("expiration_date")}
    with admit_memories(len(texts)):
        stored = LongTermMemory().remember_all(
            [
                MemoryEntry(
                    tenant_id=required_tenant_id(),
                    agent_id=owner.agent_id,
                    user_id=owner.user_id,
                    content=text.content,
                    metadata={
                        **({} if text.role == "user" else {"role": text.role}),
                        **metadata_of(fields),
                    },
                    **{name: time for name, time in times.items() if time is not None},
                    **_extracted_fields(text),
                )
                for text in texts
            ],
            # As the platform: another value of the slot may end what was extracted.
            author=replace(SYSTEM, owns_proposal=author.owns_proposal),
        )
    for text, fact in zip(texts, stored, strict=True):
        if text.extracted is not None:
            former = text.extracted.supersedes
            supersede_current_value(fact.memory_id, former.id if former else None)
    return stored


def _extracted_fields(text: Text) -> dict[str, Any]:
    if text.extracted is None:
        return {}
    candidate, begins = text.extracted.candidate, text.extracted.valid_from
    names = ("subject", "slot", "value", "is_multi_valued")
    dated = {} if begins is None else {"valid_from": begins}
    return {name: getattr(candidate, name) for name in names} | dated


def metadata_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a request's facts, with the app and the run that it names."""
    entities = {name: fields[name] for name in IN_METADATA if fields[name] is not None}
    return {**fields["metadata"], **entities}


def existing_facts(first: UUID, texts: Sequence[Text], owner: Owner) -> list[UUID]:
    """Return the ids of the owner's facts with these texts, and of `first`, oldest first."""
    facts = MemoryEntry.objects.of_tenant(required_tenant_id()).as_of()
    facts = facts.filter(agent_id=owner.agent_id, user_id=owner.user_id)
    same_text = Q(content_digest__in={digest(text.content) for text in texts})
    found = facts.filter(same_text | Q(memory_id=first))
    return [*found.order_by("created_at").values_list("memory_id", flat=True)]
