"""Which conversations are enqueued, and when: replies, imports, guests, merged people."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.extraction import fact_requests, runs
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun, RunState
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.models import MemoryEntry, Message
from tenants.context import connection
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.extraction.conftest import AddMessage, SetAnswer, cursor_id, fact
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db


def waiting() -> set[tuple[str, str]]:
    """User and thread of the conversations that have a job."""
    connection.cursor().execute("SELECT 1")  # sends what is queued
    keys = runs.EXTRACTIONS.jobs().values_list("key")
    cursors = ExtractionCursor.objects.filter(pk__in=keys)
    return {*cursors.values_list("user_id", "thread_id")}


def test_a_reply_enqueues_its_conversation_once(program: Program) -> None:
    for content in ("I live in Oslo.", "I like tea."):
        incoming = Incoming(program.agent.id, "maria", "t1", "rest", content)
        message, _ = accept(incoming, tenant_id=program.tenant.id)
        pipeline.handle(tenant_id=program.tenant.id, message_id=message.id)
    assert waiting() == {("maria", "t1")}
    job = runs.EXTRACTIONS.jobs().get()
    assert (job.attempts, job.begun_at) == (0, None)
    assert job.due_at > timezone.now() + timedelta(seconds=500)


def test_the_job_waits_for_a_language_model(add_message: AddMessage, settings: Any) -> None:
    settings.LLM_POOL_URL = ""
    add_message("I live in Oslo.")
    runs.extract(cursor_id())
    job = runs.EXTRACTIONS.jobs().get()
    assert (job.last_error, job.failed_at) == (fact_requests.NO_MODEL, None)
    assert not ExtractionRun.objects.exists()


def test_an_import_enqueues_its_conversations_and_is_processed_in_batches(
    program: Program, llm_server: LLMServer
) -> None:
    program.agent.extraction_batch_size = 20
    program.agent.save()
    llm_server.default = Answer({"content": '{"facts": []}'})
    lines = [
        {
            "agent": program.agent.name, "user_id": "maria", "thread_id": "t1", "role": "user",
            "content": f"Turn {number}.", "created_at": f"2025-01-01T09:{number:02}:00Z",
            "external_id": str(number),
        }
        for number in range(50)
    ]  # fmt: skip
    import_history(lines, tenant_id=program.tenant.id)
    assert waiting() == {("maria", "t1")}
    # The conversation is idle already.
    assert runs.EXTRACTIONS.jobs().get().due_at <= timezone.now()
    while waiting():
        runs.extract(cursor_id())
    assert len(llm_server.requests) == 3
    assert ExtractionRun.objects.filter(state=RunState.APPLIED).count() == 3
    newest = Message.objects.latest("number")
    assert ExtractionCursor.objects.get().last_number == newest.number
    # The same lines are no new messages.
    import_history(lines, tenant_id=program.tenant.id)
    assert waiting() == set()


def test_message_during_the_end_of_a_run_keeps_the_job(
    add_message: AddMessage, answer: SetAnswer, llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    add_message("I live in Oslo.")
    answer(fact("Oslo", "I live in Oslo"))
    real = fact_requests.parse_facts

    def read(output: str) -> Any:
        add_message("I like tea.")
        return real(output)

    monkeypatch.setattr(fact_requests, "parse_facts", read)
    runs.extract(cursor_id())
    assert waiting() == {("maria", "t1")}
    assert MemoryEntry.objects.get().value == "Oslo"


def test_a_failed_job_gets_new_attempts_with_a_message_after_a_day(
    add_message: AddMessage, llm_server: LLMServer
) -> None:
    add_message("I live in Oslo.")
    llm_server.answers.append(Answer({"error": "no such model"}, status=403))
    runs.extract(cursor_id())
    add_message("I like tea.")
    assert runs.EXTRACTIONS.jobs().get().failed_at is not None
    runs.EXTRACTIONS.jobs().update(failed_at=Now() - timedelta(days=2))
    add_message("And coffee.")
    waiting()
    job = runs.EXTRACTIONS.jobs().get()
    assert (job.failed_at, job.attempts) == (None, 0)
