"""Create agents that extract facts and conversations, and run the queued extractions."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from benchmarks.facts.model_server import Session
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant


def run_with_review(run: Callable[[UUID, str], object], description: str) -> None:
    """Run a benchmark in a new tenant with the fact_review of the arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--review", default="doubtful", help="the agent's fact_review")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        from tenants.context import tenant_scope

        with tenant_scope(tenant_id):
            run(tenant_id, arguments.review)


def make_agent(tenant_id: UUID, name: str, **fields: Any) -> UUID:
    """Create an agent that extracts facts. Return its id."""
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
    from konstruct.orchestrator.extraction import runs
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
        runs.enqueue(tenant_id, [Thread(agent_id, user_id, session.name)])
    return ids


def extract_all(order: Callable[[Any], Any] | None = None) -> int:
    """Run the due jobs of extraction as a worker does. Return the number of runs.

    Args:
        order: key by which cursors are sorted; by default the order of their conversations.
    """
    from konstruct.orchestrator.extraction import runs
    from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun

    before = ExtractionRun.objects.count()
    # Ends: each run postpones or finishes a job, and failed jobs are left out.
    failed: set[UUID] = set()
    while True:
        waiting = set(runs.EXTRACTIONS.jobs().values_list("key", flat=True)) - failed
        cursors = ExtractionCursor.objects.filter(pk__in=waiting)
        if not waiting:
            return ExtractionRun.objects.count() - before
        for cursor in sorted(cursors, key=order or (lambda cursor: cursor.thread_id)):
            runs.extract(cursor.pk)
            failed |= set(
                runs.EXTRACTIONS.jobs([cursor.pk])
                .exclude(last_error="")
                .values_list("key", flat=True)
            )


def operate(*arguments: str) -> str:
    """Run a command of manage.py. Return its output."""
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
    """Return the schema of a tenant as pg_dump writes it."""
    from konstruct.local.services import DATABASE

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
    """Return the states of a user's facts by their sentences."""
    from memory.models import MemoryEntry

    rows = MemoryEntry.objects.entries().filter(user_id=user_id)
    return dict(rows.values_list("content", "state"))
