"""Adding memories: which texts of a request are kept, and under whose name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from konstruct.api.auth.caller import Caller
from konstruct.interfaces.mem0.filters import ENTITIES, IN_METADATA
from konstruct.orchestrator.agents import create_agent, find_agent
from konstruct.orchestrator.exceptions import AgentNameTaken, AgentNotFound
from konstruct.orchestrator.models.querysets import UUID_TEXT
from memory.exceptions import InvalidArgument
from memory.facts import LongTermMemory, Stored
from memory.fields import digest
from memory.models import MemoryEntry
from tenants.context import required_tenant_id

FACTS = LongTermMemory()


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be kept, and who said it."""

    content: str
    role: str = "user"


def texts_of(messages: Sequence[dict[str, str]], *, users_only: bool) -> list[Text]:
    """The texts that are kept as they are: all that was said, or what users said.

    A system message is not said by anybody, and a tool's not to anybody.
    """
    roles = ("user",) if users_only else ("user", "assistant")
    return [
        Text(message["content"], message["role"])
        for message in messages
        if message["role"] in roles and message["content"].strip()
    ]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memories are: an agent's, a user's, or both; in an app or a run of theirs."""

    agent_id: UUID | None
    user_id: str | None
    metadata: dict[str, str]
    # An agent that was made for them.
    made: str | None = None


def owner_of(caller: Caller, fields: dict[str, Any], *, may_make: bool) -> Owner:
    """Whose memories a request adds; a bound key's own, whatever it leaves out.

    `may_make`: an agent that the tenant does not have is made, for a key that may make agents.

    Raises:
        OutsideOfKey, AgentNotFound: the key is bound to another user, or another agent.
        InvalidArgument: nobody is named, or a run or an app alone.
    """
    user_id = caller.user_id if fields["user_id"] is None else caller.user(fields["user_id"])
    agent_id, made = caller.agent_id, None
    if fields["agent_id"] is not None:
        agent_id, made = _agent(caller, fields["agent_id"], may_make=may_make)
    if agent_id is None and user_id is None:
        named = [name for name in ENTITIES if fields[name] is not None]
        raise InvalidArgument(
            f"a memory of {' and '.join(named)} alone would be every user's; name user_id or"
            " agent_id with it"
            if named
            else "whose memory it is has not been said; name user_id or agent_id"
        )
    inner = {name: fields[name] for name in IN_METADATA if fields[name] is not None}
    return Owner(agent_id, user_id, inner, made)


def standing_owner(caller: Caller, fields: dict[str, Any]) -> Owner | None:
    """As `owner_of`, before something costly is done; None if an agent is to be made first."""
    try:
        return owner_of(caller, fields, may_make=False)
    except AgentNotFound:
        if not _can_be_made(caller, fields["agent_id"]):
            raise
    return None


def _can_be_made(caller: Caller, name: str) -> bool:
    """Whether an agent may be made under this name: not by a bound key, and an id is no name."""
    return not caller.is_bound and not UUID_TEXT.fullmatch(name)


def _agent(caller: Caller, name: str, *, may_make: bool) -> tuple[UUID, str | None]:
    """The agent of that name, made if there is none; and its name if it was made."""
    try:
        return caller.agent(name).id, None
    except AgentNotFound:
        if not may_make or not _can_be_made(caller, name):
            raise
    try:
        made = create_agent(tenant_id=required_tenant_id(), name=name)
    except AgentNameTaken:  # by another request, a moment ago
        return find_agent(name).id, None
    caller.named["agent_id"] = made.id
    return made.id, name


def keep(
    texts: Sequence[Text],
    owner: Owner,
    *,
    metadata: dict[str, Any],
    timestamp: datetime | None,
    expires_at: datetime | None,
) -> list[Stored]:
    """Keep texts as facts, one each; what stands already takes in the metadata."""
    entries = []
    for text in texts:
        # Who said it is told of what no user said.
        role = {} if text.role == "user" else {"role": text.role}
        entry = MemoryEntry(
            tenant_id=required_tenant_id(),
            agent_id=owner.agent_id,
            user_id=owner.user_id,
            content=text.content,
            metadata={**role, **metadata, **owner.metadata},
        )
        if timestamp is not None:
            entry.valid_from = timestamp
        if expires_at is not None:
            entry.expires_at = expires_at
        entries.append(entry)
    return FACTS.remember_all(entries)


def standing(first: UUID, texts: Sequence[Text], owner: Owner) -> list[UUID]:
    """Ids of the facts of the same agent and user that say these texts, and of `first`."""
    rows = MemoryEntry.objects.of_tenant(required_tenant_id()).as_of()
    rows = rows.filter(agent_id=owner.agent_id, user_id=owner.user_id)
    said = Q(content_digest__in={digest(text.content) for text in texts})
    found = rows.filter(said | Q(memory_id=first))
    return [*found.order_by("created_at").values_list("memory_id", flat=True)]
