"""Whole runs with a language model behind HTTP that fails, hangs, or answers invalid data."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from konstruct.consistency import verify
from konstruct.llm import client
from konstruct.orchestrator import usage as counts
from konstruct.orchestrator.exceptions import ExtractionFailed
from konstruct.orchestrator.extraction import fact_requests, runs
from konstruct.orchestrator.identities.erasure_requests import request_message_erasure
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun, RunState
from konstruct.privacy import jobs as owner_jobs
from memory.facts import embed_facts
from memory.models import FactEvidence, FactKind, MemoryEntry, Message
from tenants.audit.access_log import Actor
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tests import database
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.extraction.conftest import AddMessage, cursor_id, fact
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db

STATEMENT = "I live in Oslo, and I like tea."
RIGHT = Answer(
    {
        "content": json.dumps({"facts": [fact("Oslo", "I live in Oslo")]}),
        "usage": {"prompt_tokens": 70, "completion_tokens": 30},
    }
)
TOO_LONG = Answer({"content": "x" * 10_000_000})
# Answers of a server, and the code of the failure.
FAILURES = {
    "hangs": (Answer("", wait=True), "llm_timeout"),
    "drips": (Answer("x" * 1000, drip=0.02), "llm_timeout"),
    "503 for an hour": (
        Answer("busy", status=503, headers={"Retry-After": "3600"}),
        "llm_unavailable",
    ),
    "cuts the connection": (Answer({"content": "x" * 1000}, cut_after=20), "llm_unavailable"),
    "HTML": (Answer("<html>Bad gateway</html>"), "llm_reply_invalid"),
    "10 MB": (TOO_LONG, "llm_reply_invalid"),
    "10 MB of brackets": (Answer("[" * 10_000_000), "llm_reply_invalid"),
    "nested": (Answer('{"content":' * 5_000 + "1" + "}" * 5_000), "llm_reply_invalid"),
}
LONG = ("10 MB", "10 MB of brackets")


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(client, "FIRST_PAUSE_SECONDS", 0.001)
    settings.LLM_TIMEOUT = 2


def job() -> Job:
    return runs.EXTRACTIONS.jobs().get()


def usage(program: Program) -> counts.ModelUsage:
    (row,) = counts.model_usage(since=timezone.now() - timedelta(days=1))
    assert (row.agent_id, row.purpose) == (program.agent.id, "extraction")
    return row


def assert_no_leases() -> None:
    """Check that no lease of a job, lane of a user or slot of a tenant is held."""
    assert not Job.objects.filter(leased_until__isnull=False).exists()
    assert not Job.objects.filter(leased_until__isnull=False).exists()
    assert fact_requests.request_slots.in_flight() == 0


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_model_causes_a_failed_run_and_a_retried_job(
    program: Program, add_message: AddMessage, llm_server: LLMServer, settings: Any, failure: str
) -> None:
    settings.LLM_TIMEOUT = 0.3 if failure in ("hangs", "drips") else 2
    llm_server.default, code = FAILURES[failure]
    message = add_message(STATEMENT)
    runs.extract(cursor_id())
    run = ExtractionRun.objects.get()
    assert (run.state, run.output, run.candidates) == (RunState.FAILED, "", [])
    assert run.error
    assert run.ended_at is not None
    assert (job().attempts, job().error_code, job().failed_at) == (1, code, None)
    pause = 3600 if "hour" in failure else 60
    assert job().due_at > timezone.now() + timedelta(seconds=pause - 10)
    assert not MemoryEntry.objects.exists()
    assert ExtractionCursor.objects.get().last_number == 0
    assert (usage(program).calls, usage(program).failed, usage(program).unknown) == (1, 1, 0)
    assert_no_leases()

    llm_server.default = RIGHT
    settings.LLM_TIMEOUT = 2
    llm_server.release()
    runs.extract(cursor_id())
    assert MemoryEntry.objects.get().value == "Oslo"
    assert ExtractionCursor.objects.get().last_number == message.number
    assert not runs.EXTRACTIONS.jobs().exists()
    assert (usage(program).calls, usage(program).failed) == (2, 1)
    # The prompt of a request that was ended is counted too.
    estimated = usage(program).prompt_tokens - 70
    assert (estimated > 0) == (failure in ("hangs", "drips", *LONG))
    assert usage(program).completion_tokens == 30
    assert_no_leases()


def test_unavailable_model_fails_visibly_and_can_be_retried(
    program: Program,
    add_message: AddMessage,
    llm_server: LLMServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(vars(runs.EXTRACTIONS), "max_attempts", 3)
    with_server, settings.LLM_POOL_URL = settings.LLM_POOL_URL, "http://127.0.0.1:9/"
    add_message(STATEMENT)
    pauses = []
    for _ in range(3):
        began = timezone.now()
        runs.extract(cursor_id())
        pauses.append((job().due_at - began).total_seconds())
    assert pauses[0] == pytest.approx(60, abs=10)
    assert pauses[1] == pytest.approx(120, abs=10)
    assert (job().attempts, job().error_code) == (3, "llm_unavailable")
    assert job().failed_at is not None
    runs.extract(cursor_id())  # a given-up job does not restart by itself
    assert ExtractionRun.objects.filter(state=RunState.FAILED).count() == 3
    assert (usage(program).calls, usage(program).failed) == (3, 3)
    # Unprocessed messages are not skipped.
    assert ExtractionCursor.objects.get().last_number == 0

    settings.LLM_POOL_URL = with_server
    llm_server.default = RIGHT
    assert runs.EXTRACTIONS.retry(cursor_id())
    runs.extract(cursor_id())
    assert MemoryEntry.objects.get().value == "Oslo"
    assert not runs.EXTRACTIONS.jobs().exists()


# --- Answers --------------------------------------------------------------------------------------


def wrong(**fields: Any) -> dict[str, Any]:
    return {**fact("Oslo", "I live in Oslo"), **fields}


BOMB: Any = "x"
for _ in range(200):
    BOMB = [BOMB]
# RefusedCandidate facts of an answer with the reason; None: the whole answer is refused.
ANSWERS: dict[str, tuple[Any, str | None]] = {
    "NUL": (wrong(value="Os\0lo"), "malformed"),
    "NUL in a quote": (wrong(quote="I live\0in"), "quote not in message"),
    "a lone surrogate": (wrong(fact="Maria lives in \ud800."), "malformed"),
    "a lone surrogate in a quote": (wrong(quote="\ud800 I live"), "malformed"),
    "right to left": (wrong(fact="Maria lives in \u202eolsO."), "malformed"),
    "a date before Christ": (wrong(valid_from="0001-01-01T00:00:00+14:00"), "malformed"),
    "the last day": (wrong(valid_from="9999-12-31"), "date out of range"),
    "a long date": (wrong(valid_from="2" * 50_000), "malformed"),
    "a number": (7, "malformed"),
    "nested objects": (wrong(value={"a": {"b": {}}}), "malformed"),
    "a nested bomb": (wrong(value=BOMB), None),
    "a bomb beside": (wrong(extra=BOMB), None),
    "an infinite number": (wrong(extra=float("inf")), None),
    "201 facts": ([wrong()] * 201, None),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hostile_answer_changes_no_fact(
    program: Program, add_message: AddMessage, llm_server: LLMServer, answer: str
) -> None:
    answers, reason = ANSWERS[answer]
    answers = answers if isinstance(answers, list) else [answers]
    tokens = {"prompt_tokens": 7, "completion_tokens": 3}
    llm_server.default = Answer({"content": json.dumps({"facts": answers}), "usage": tokens})
    message = add_message(STATEMENT, channel="import")
    runs.extract(cursor_id())
    run = ExtractionRun.objects.get()
    if reason is None:
        assert run.state == RunState.FAILED
        assert "no list of facts" in run.error
        assert (job().attempts, job().failed_at) == (1, None)
    else:
        assert (run.state, run.error) == (RunState.APPLIED, "")
        assert run.result["refused"] == {reason: 1}
        assert ExtractionCursor.objects.get().last_number == message.number
        assert not runs.EXTRACTIONS.jobs().exists()
    assert not MemoryEntry.objects.exists()
    assert not FactEvidence.objects.exists()
    # The tokens of an invalid answer were used.
    row = usage(program)
    assert (row.calls, row.failed, row.prompt_tokens, row.completion_tokens) == (1, 0, 7, 3)
    assert_no_leases()
    assert verify(program.tenant.id, "a").findings == []


def test_ids_of_another_tenant_user_or_conversation_are_ignored(
    program: Program, tenant_b: Tenant, add_message: AddMessage, llm_server: LLMServer
) -> None:
    add_message("I live in Bergen.", user_id="bob", thread_id="t2")
    with tenant_scope(tenant_b.id):
        entry = MemoryEntry(
            tenant_id=tenant_b.id,
            agent_id=program.agent.id,
            user_id="maria",
            content="Maria lives in Bergen.",
            subject="Maria",
            slot="home_city",
            is_multi_valued=False,
            value="Bergen",
            kind=FactKind.ENTERED,
        )
        embed_facts([entry])
        entry.save()
    add_message(STATEMENT)
    llm_server.default = Answer(
        {
            "content": json.dumps(
                {
                    "facts": [
                        wrong(quote="I live in Bergen"),
                        wrong(supersedes=str(entry.memory_id)),
                        wrong(supersedes=f"k{entry.memory_id.hex[:8]}"),
                    ]
                }
            )
        }
    )
    cursor = ExtractionCursor.objects.get(user_id="maria")
    runs.extract(cursor.pk)
    run = ExtractionRun.objects.get()
    assert run.state == RunState.APPLIED
    assert run.result["refused"] == {"quote not in message": 1, "supersedes an unknown fact": 2}
    assert not MemoryEntry.objects.exists()
    assert [sent.question.count("Bergen") for sent in llm_server.requests] == [0]
    with tenant_scope(tenant_b.id):
        assert MemoryEntry.objects.get(pk=entry.memory_id).state == "active"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_preview", [False, True])
def test_the_answer_to_messages_that_are_erased_meanwhile_is_thrown_away(
    program: Program,
    add_message: AddMessage,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
    is_preview: bool,
) -> None:
    message = add_message(STATEMENT)
    request = request_message_erasure(
        **Thread.of(message).as_filter, message_id=message.id, by=Actor.operator("test")
    )

    real = fact_requests.request_facts

    def erase_after(*arguments: Any) -> str:
        output = real(*arguments)
        with database.as_owner(), tenant_scope(program.tenant.id):
            owner_jobs.ERASE_MESSAGES.carry_out(request.pk)
        return output

    monkeypatch.setattr(fact_requests, "request_facts", erase_after)
    llm_server.default = RIGHT
    if is_preview:
        with pytest.raises(ExtractionFailed, match="erased"):
            runs.preview(messages=[message], requested_by="person:7")
    else:
        runs.extract(cursor_id())
    assert not Message.objects.exists()
    assert not MemoryEntry.objects.exists()
    # The run had the words of the message.
    assert not ExtractionRun.objects.exists()
    assert usage(program).calls == 1
    runs.extract(cursor_id())
    assert not runs.EXTRACTIONS.jobs().exists()
    assert_no_leases()
