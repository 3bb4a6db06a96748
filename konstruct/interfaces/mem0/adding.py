"""Adding memories: the owner of new facts, and writing them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.db.models import Q
from django.utils import timezone

from konstruct.api.auth.permissions import Caller
from konstruct.interfaces.mem0.filters import ENTITIES, IN_METADATA
from konstruct.llm.completions import LLMError
from konstruct.orchestrator import exceptions, language_models, models, usage
from konstruct.orchestrator.extraction import checks, runs
from memory.conversations.transcript import ImportedTurn, import_turns
from memory.exceptions import InvalidArgument
from memory.facts import Author, LongTermMemory, StoredFact, lifecycle
from memory.fields import digest
from memory.models import MemoryEntry, Message
from memory.models.facts import SYSTEM
from memory.tasks import embed_and_store
from memory.text.sentences import estimated_pieces
from tenants import context, jobs, transaction


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
    transaction.on_commit(lambda: jobs.enqueue_task(embed_and_store, str(tenant_id)))
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
