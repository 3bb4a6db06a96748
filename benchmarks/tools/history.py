"""A short history of one user: 60 turns in eight sessions, with facts, changes and distractors.

`history.json` also has the facts that the turns hold, facts that a program stores besides them, and
questions with the rules of a right answer: regular expressions of which all of "all" and none of
"none" match the answer, in lower case.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

USER = "nina"
HISTORY: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
SECONDS_BETWEEN_TURNS = 40


def record_history(
    tenant_id: UUID, agent_id: UUID, sessions: int | None = None, user_id: str = USER
) -> None:
    """Record the first sessions, each in its own thread, and enqueue their extractions."""
    for number, session in enumerate(HISTORY["sessions"][:sessions], start=1):
        began = datetime.now(UTC) - timedelta(days=session["days_ago"])
        record_turns(tenant_id, agent_id, f"session-{number}", session["turns"], began, user_id)


def record_turns(
    tenant_id: UUID,
    agent_id: UUID,
    thread_id: str,
    turns: list[str],
    began: datetime,
    user_id: str = USER,
) -> None:
    """Record turns of the user and the agent, who alternate."""
    from konstruct.orchestrator.extraction import runs
    from konstruct.orchestrator.messages import Thread
    from memory import indexing
    from memory.conversations.short_term import delete_window
    from memory.conversations.transcript import record_message
    from tenants import transaction

    message = None
    with transaction.atomic():
        for position, text in enumerate(turns):
            message, _ = record_message(
                tenant_id=tenant_id,
                agent_id=agent_id,
                user_id=user_id,
                thread_id=thread_id,
                channel="rest",
                role=("user", "assistant")[position % 2],
                content=text,
                in_reply_to=message.id if message and position % 2 else None,
                created_at=began + timedelta(seconds=position * SECONDS_BETWEEN_TURNS),
            )
        runs.enqueue(tenant_id, [Thread(agent_id, user_id, thread_id)])
    delete_window(tenant_id, agent_id, user_id)
    while indexing.drain(tenant_id).more:
        pass


def store_facts(tenant_id: UUID, agent_id: UUID, user_id: str) -> None:
    """Store the facts about the user that no turn states."""
    from memory.context import LongTermMemory, MemoryEntry

    for content in HISTORY["stored_facts"]:
        LongTermMemory().store(
            MemoryEntry(tenant_id=tenant_id, agent_id=agent_id, user_id=user_id, content=content)
        )


def is_right(question: Mapping[str, Any], answer: str) -> bool:
    """Return whether an answer follows the rules of the question."""
    text = answer.casefold()
    return all(re.search(rule, text) for rule in question["all"]) and not any(
        re.search(rule, text) for rule in question["none"]
    )
