"""Extraction: the language model finds the facts of a conversation while the client waits.

The prompt, the checks and the meter are those of an extraction run. Where the request names an
agent and a user, its messages become a part of the transcript, and the facts rest on them.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.utils import timezone

from konstruct.interfaces.mem0.adding import Owner, Text, metadata_of
from konstruct.llm.exceptions import LLMError
from konstruct.orchestrator.exceptions import ExtractionFailed, ExtractionLimitReached
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import Agent, ModelTier
from konstruct.orchestrator.usage import admit_memories
from memory.conversations.importing import ImportedTurn, import_turns
from memory.exceptions import InvalidArgument
from memory.facts import StoredFact
from memory.models import MemoryEntry, Message
from memory.tasks import embed_and_store
from memory.text.chunking import estimated_pieces
from tenants import transaction
from tenants.context import required_tenant_id
from tenants.jobs import enqueue_task

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
    if not settings.LLM_POOL_URL:
        raise NotExtracted(NO_MODEL)
    agent = Agent.objects.filter(pk=owner.agent_id).first() if owner.agent_id else None
    moment = said_at or timezone.now()
    messages = [
        Message(role=text.role, content=text.content, created_at=moment, user_id="")
        for text in texts
    ]
    try:
        return runs.extract_unsaved_messages(
            agent or Agent(id=uuid4(), name="mem0", model_tier=ModelTier.FAST),
            owner.user_id or "",
            messages,
            requested_by=requested_by,
            timeout=TIMEOUT_SECONDS,
        )
    except ExtractionLimitReached as error:
        raise NotExtracted(LIMIT_REACHED) from error
    except (LLMError, ExtractionFailed) as error:
        logger.warning("No facts were extracted: %s", error)
        raise NotExtracted(NO_ANSWER) from error


def record_run(
    answered: runs.UnsavedExtraction, texts: Sequence[Text], owner: Owner, fields: dict[str, Any]
) -> list[StoredFact]:
    """Write the texts into the transcript, and record the facts that rest on them.

    Call it in a transaction.

    Args:
        answered: of `extract_facts`.
        texts: the conversation.
        owner: an agent and a user.
        fields: validated fields of the request.

    Returns:
        The facts that are active now. Others may wait for a review.
    """
    if owner.agent_id is None or owner.user_id is None:
        raise InvalidArgument("the facts of a run have an agent and a user")
    tenant_id = required_tenant_id()
    with admit_memories(sum(estimated_pieces(text.content) for text in texts)):
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
        )
    transaction.on_commit(lambda: enqueue_task(embed_and_store, str(tenant_id)))
    ids = [turn.message.pk for turn in imported]
    rows = Message.objects.in_bulk(ids)
    agent = Agent.objects.get(pk=owner.agent_id)
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
