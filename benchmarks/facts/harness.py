"""Agents that extract facts, their conversations, and the extraction of all that waits."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from benchmarks.facts.model_server import Session
from benchmarks.tools.throwaway import PROJECT


def make_agent(tenant_id: UUID, name: str, **fields: Any) -> UUID:
    """Make an agent that extracts facts; return its id."""
    from konstruct.orchestrator.agents import create_agent

    return create_agent(tenant_id=tenant_id, name=name, extracts_facts=True, **fields).id


def record_session(
    tenant_id: UUID,
    agent_id: UUID,
    user_id: str,
    session: Session,
    *,
    speakers: Mapping[str, str],
    began_at: datetime,
    role: Callable[[str], str] = lambda _: "user",
) -> list[UUID]:
    """Record the messages of a session as a conversation, and enqueue its extraction.

    Args:
        speakers: names by the ids of messages.
        began_at: time of the first message; each of the others is a second later.
        role: user or assistant, by the name of the speaker.
    """
    from konstruct.orchestrator.extraction import queue
    from konstruct.orchestrator.messages import Thread
    from memory.conversations import transcript
    from tenants import transaction

    ids = []
    with transaction.atomic():
        for position, (name, text) in enumerate(session.texts.items()):
            message, _ = transcript.record_message(
                tenant_id=tenant_id,
                agent_id=agent_id,
                user_id=user_id,
                thread_id=session.name,
                channel="import",
                role=role(speakers[name]),
                name=speakers[name],
                content=text,
                external_id=f"{session.name}:{name}",
                created_at=began_at + timedelta(seconds=position),
            )
            ids.append(message.id)
        queue.enqueue(tenant_id, [Thread(agent_id, user_id, session.name)])
    return ids


def extract_all(order: Callable[[Any], Any] | None = None) -> int:
    """Do the jobs of extraction that are due, as a worker does; return how many runs there were.

    Args:
        order: key by which cursors are sorted; by default the order of their conversations.
    """
    from konstruct.orchestrator.extraction import queue, runs
    from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun

    before = ExtractionRun.objects.count()
    # Ends: a job is postponed or finished by each of its runs, and a failed one is left out.
    failed: set[UUID] = set()
    while True:
        waiting = set(queue.EXTRACTIONS.jobs().values_list("key", flat=True)) - failed
        cursors = ExtractionCursor.objects.filter(pk__in=waiting)
        if not waiting:
            return ExtractionRun.objects.count() - before
        for cursor in sorted(cursors, key=order or (lambda each: each.thread_id)):
            runs.extract(cursor.pk)
            failed |= set(
                queue.EXTRACTIONS.jobs([cursor.pk])
                .exclude(last_error="")
                .values_list("key", flat=True)
            )


def operate(*arguments: str) -> str:
    """Run a command of manage.py; return its output."""
    ran = subprocess.run(
        [sys.executable, PROJECT / "manage.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        sys.exit(f"manage.py {' '.join(arguments)}: {ran.stderr or ran.stdout}")
    return ran.stdout


def dump(schema: str) -> str:
    """The schema of a tenant, as pg_dump writes it."""
    from konstruct.local.embedded.paths import DATABASE

    ran = subprocess.run(
        [
            *(sys.executable, "-m", "konstruct.local.embedded", "tool", "pg_dump"),
            *("--schema", schema, "--dbname", DATABASE),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def states(user_id: str) -> dict[str, str]:
    """States of a user's facts by their sentences."""
    from memory.models import MemoryEntry

    rows = MemoryEntry.objects.entries().filter(user_id=user_id)
    return dict(rows.values_list("content", "state"))
