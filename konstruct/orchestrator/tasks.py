"""Celery tasks of the orchestrator. Each takes ids, enters its tenant and calls one service."""

from uuid import UUID

from celery import shared_task

from konstruct.orchestrator import pipeline, saved_questions, usage
from konstruct.orchestrator.exceptions import MessageNotFound
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.replies import queue
from tenants.serving import TenantTask


@shared_task
def measure_usage() -> int:
    """Measure the usage of tenants with an old measurement. Safe to run twice."""
    return usage.measure_due()


@shared_task(base=TenantTask)
def handle_message(tenant_id: str, message_id: str) -> None:
    """Answer a message. Safe to run twice, also concurrently; the job table has the retries."""
    try:
        pipeline.handle(tenant_id=UUID(tenant_id), message_id=UUID(message_id))
    except MessageNotFound:
        queue.REPLIES.finish(UUID(message_id))  # removed, for example by a restore of this tenant
        raise


@shared_task(base=TenantTask)
def extract_facts(tenant_id: str, cursor_id: str) -> None:
    """Extract facts from a conversation. Safe to run twice; the job table has the retries."""
    runs.extract(UUID(cursor_id))


@shared_task(base=TenantTask)
def end_interrupted_preview(tenant_id: str, run_id: str) -> None:
    """Mark a preview as failed if its process ended before it. Safe to run twice."""
    runs.end_interrupted_preview(UUID(run_id))


@shared_task(base=TenantTask)
def ask_saved_questions(tenant_id: str, agent_id: str) -> None:
    """Ask an agent its saved questions. Safe to run twice: an answer replaces the one before."""
    saved_questions.ask_questions(UUID(agent_id))
