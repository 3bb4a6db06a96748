"""Extraction runs: their prompts, their records, and the state after a failure."""

import json
from collections.abc import Callable
from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from konstruct.orchestrator import models, usage
from konstruct.orchestrator.exceptions import ExtractionLimitReached, WrongState
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.messages import Thread
from memory import facts
from memory.conversations.transcript import record_message
from memory.facts import Author
from memory.models import AuthorKind, FactEvent, FactEvidence, FactState, MemoryEntry, Message
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.extraction.conftest import AddMessage, SetAnswer, cursor_id, fact
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db


def test_a_fact_is_extracted_with_its_evidence(
    add_message: AddMessage, answer: SetAnswer, llm_server: LLMServer
) -> None:
    message = add_message("Hi, I moved to Porto last year.")
    answer(fact("Porto", "I moved to Porto"), prompt_tokens=70, completion_tokens=30)
    runs.extract(cursor_id())
    entry = MemoryEntry.objects.get()
    assert (entry.content, entry.state, entry.asserter) == (
        "Maria lives in Porto.", FactState.ACTIVE, "Maria",
    )  # fmt: skip
    assert (entry.agent_id, entry.user_id) == (message.agent_id, "maria")
    evidence = FactEvidence.objects.get()
    assert (evidence.message_id, evidence.start, evidence.end) == (message.id, 4, 20)
    run = models.ExtractionRun.objects.get()
    assert (run.state, run.message_ids, run.id) == (
        models.RunState.APPLIED,
        [message.id],
        entry.run_id,
    )
    assert (run.prompt_tokens, run.completion_tokens) == (70, 30)
    assert run.response_format == "json_schema"
    assert run.result == {"candidates": 1, "active": 1, "refused": {}}
    assert run.candidates[0]["memory_id"] == str(entry.memory_id)
    call = models.ModelCall.objects.get()
    assert (call.outcome, call.prompt_tokens) == (models.CallOutcome.DONE, 70)
    assert models.ExtractionCursor.objects.get().last_number == message.number
    assert not runs.EXTRACTIONS.jobs().exists()
    (request,) = llm_server.requests
    assert request.body["response_format"]["type"] == "json_schema"
    assert '"text": "Hi, I moved to Porto last year."' in request.question


def move(add_message: AddMessage, answer: SetAnswer, text: str, **dates: str) -> str:
    """Extract a home, and another one that supersedes it. Return the id of the first one."""
    add_message("I live in Oslo.")
    answer(fact("Oslo", "I live in Oslo"))
    runs.extract(cursor_id())
    known = f"k{MemoryEntry.objects.get().memory_id.hex[:8]}"
    add_message(text)
    answer(fact("Porto", "Porto", supersedes=known, **dates))
    runs.extract(cursor_id())
    return known


def test_new_values_supersede_by_the_id_of_a_known_fact(
    add_message: AddMessage, answer: SetAnswer, llm_server: LLMServer
) -> None:
    known = move(add_message, answer, "I have left Oslo, and live in Porto now.")
    assert dict(MemoryEntry.objects.values_list("value", "state")) == {
        "Oslo": FactState.SUPERSEDED,
        "Porto": FactState.ACTIVE,
    }
    assert f'"id": "{known}"' in llm_server.requests[1].question
    # Earlier messages are context.
    assert '"text": "I live in Oslo."' in llm_server.requests[1].question


def test_a_model_proposes_to_end_one_of_several_values(
    program: Program, add_message: AddMessage, answer: SetAnswer
) -> None:
    program.agent.fact_review = "doubtful"
    program.agent.save()
    hobby = {"slot": "hobby", "multi": True}
    add_message("I play tennis and chess.")
    answer(
        fact("tennis", "I play tennis", fact="Maria plays tennis.", **hobby),
        fact("chess", "chess", fact="Maria plays chess.", **hobby),
    )
    runs.extract(cursor_id())
    tennis = MemoryEntry.objects.get(value="tennis")
    add_message("I gave up tennis for padel.")
    padel = fact(
        "padel", "gave up tennis for padel", fact="Maria plays padel.", **hobby,
        supersedes=f"k{tennis.memory_id.hex[:8]}",
    )  # fmt: skip
    # A later candidate may name an earlier one of the same answer.
    golf = {**padel, "value": "golf", "fact": "Maria plays golf.", "supersedes": "f1"}
    answer(padel, golf)
    runs.extract(cursor_id())
    proposed = MemoryEntry.objects.get(value="padel")
    assert (proposed.state, proposed.replaces) == (FactState.PROPOSED, tennis.memory_id)
    assert proposed.review_reason == "ends one of several values"
    assert MemoryEntry.objects.get(value="golf").replaces is None
    facts.confirm(proposed.memory_id, author=Author(AuthorKind.PERSON, "7", "curator"))
    assert dict(MemoryEntry.objects.values_list("value", "state")) == {
        "tennis": FactState.SUPERSEDED,
        "chess": FactState.ACTIVE,
        "padel": FactState.ACTIVE,
        "golf": FactState.PROPOSED,
    }


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("In 2015 I lived in Porto.", {"valid_from": "2015"}),
        ("I will move to Porto.", {"valid_from": "2040"}),
        ("I am staying in Porto. See you!", {}),
        ("I live in Porto until Friday.", {}),
        ("Ich wohne vorübergehend in Porto.", {}),
    ],
)
def test_the_past_plans_and_temporary_states_end_no_fact_without_a_review(
    program: Program, add_message: AddMessage, answer: SetAnswer, text: str, dates: dict[str, str]
) -> None:
    program.agent.fact_review = "doubtful"
    program.agent.save()
    move(add_message, answer, text, **dates)
    assert dict(MemoryEntry.objects.values_list("value", "state")) == {
        "Oslo": FactState.ACTIVE,
        "Porto": FactState.PROPOSED,
    }
    porto = MemoryEntry.objects.get(value="Porto")
    assert porto.review_reason == "past, planned or temporary"


def test_the_messages_of_a_cut_answer_are_processed_again_in_smaller_batches(
    add_message: AddMessage, llm_server: LLMServer
) -> None:
    for text in ("I live in Oslo.", "I like tea.", "I have a cat.", "I run."):
        add_message(text)
    cut = json.dumps({"facts": [fact("Oslo", "I live in Oslo"), fact("tea", "tea")]})[:-30]
    for text, reason in ((cut, "length"), ('{"facts": []}', "stop"), ('{"facts": []}', "stop")):
        choice = {"message": {"content": text}, "finish_reason": reason}
        llm_server.answers.append(Answer({"choices": [choice]}))
        runs.extract(cursor_id())
    assert [entry.value for entry in MemoryEntry.objects.all()] == ["Oslo"]
    rows = models.ExtractionRun.objects.order_by("created_at")
    assert [("cut" in row.result, len(row.message_ids)) for row in rows] == [
        (True, 4), (False, 2), (False, 4),
    ]  # fmt: skip
    assert not runs.EXTRACTIONS.jobs().exists()
    first, second, _ = (request.body for request in llm_server.requests)
    assert first["max_completion_tokens"] == 1_600
    schemas = [
        body["response_format"]["json_schema"]["schema"]["properties"]["facts"]
        for body in (first, second)
    ]
    assert [schema["maxItems"] for schema in schemas] == [5, 5]
    # The former value is asked for if there are known facts.
    assert [len(schema["items"]["required"]) for schema in schemas] == [7, 8]


def test_same_input_again_changes_nothing(add_message: AddMessage, answer: SetAnswer) -> None:
    add_message("I live in Oslo.")
    for _ in range(2):
        answer(fact("Oslo", "I live in Oslo"))
        runs.extract(cursor_id())
        before = [*MemoryEntry.objects.values(), *FactEvidence.objects.values()]
        models.ExtractionCursor.objects.update(last_number=0)
        runs.EXTRACTIONS.enqueue(cursor_id())
    assert [*MemoryEntry.objects.values(), *FactEvidence.objects.values()] == before
    assert len(before) == 2
    newest = models.ExtractionRun.objects.order_by("created_at").last()
    assert newest is not None
    assert newest.result == {"candidates": 1, "unchanged": 1, "refused": {}}


@pytest.mark.parametrize(
    ("refused", "expected"),
    [(0, "json_schema"), (1, "json_object"), (2, "text")],
)
def test_the_format_that_an_endpoint_supports_is_found_once(
    add_message: AddMessage, answer: SetAnswer, llm_server: LLMServer, refused: int, expected: str
) -> None:
    for number in range(2):
        add_message(f"Number {number}: I live in Oslo.")
        if not number:
            llm_server.answers += [Answer({"error": "response_format"}, status=400)] * refused
        answer(f"Here you are: {json.dumps({'facts': [fact('Oslo', 'I live in Oslo')]})}")
        runs.extract(cursor_id())
    assert len(llm_server.requests) == refused + 2
    formats = [
        request.body.get("response_format", {}).get("type") for request in llm_server.requests
    ]
    assert formats[-1] == (None if expected == "text" else expected)
    assert {*models.ExtractionRun.objects.values_list("response_format", "state")} == {
        (expected, models.RunState.APPLIED)
    }
    assert MemoryEntry.objects.count() == 1


@pytest.mark.parametrize(
    "text",
    ["I cannot help with that.", '{"facts": "none"}', "{}", "{" * 10_000, '{"facts": []} {"a": 1}'],
)
def test_unreadable_answer_fails_the_run_and_is_retried(
    add_message: AddMessage, answer: SetAnswer, text: str
) -> None:
    add_message("I live in Oslo.")
    answer(text)
    runs.extract(cursor_id())
    run = models.ExtractionRun.objects.get()
    assert (run.state, run.output) == (models.RunState.FAILED, text)
    assert "no list of facts" in run.error
    job = runs.EXTRACTIONS.jobs().get()
    assert (job.attempts, job.error_code, job.failed_at) == (1, "extraction_failed", None)
    assert job.due_at > timezone.now() + timedelta(seconds=50)
    assert not MemoryEntry.objects.exists()
    assert models.ExtractionCursor.objects.get().last_number == 0


def test_a_batch_without_an_answer_is_passed_over_after_the_last_attempt(
    add_message: AddMessage, answer: SetAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(runs.EXTRACTIONS), "max_attempts", 2)
    message = add_message("I live in Oslo.")
    for _ in range(2):
        answer("I cannot help with that.")
        runs.extract(cursor_id())
    assert models.ExtractionCursor.objects.get().last_number == message.number
    runs.extract(cursor_id())
    assert not runs.EXTRACTIONS.jobs().exists()
    assert models.ExtractionRun.objects.filter(state=models.RunState.FAILED).count() == 2


def test_job_keeps_the_reason_if_the_model_refuses_the_request(
    add_message: AddMessage, llm_server: LLMServer
) -> None:
    add_message("I live in Oslo.")
    llm_server.answers.append(Answer({"error": "no such model"}, status=403))
    runs.extract(cursor_id())
    job = runs.EXTRACTIONS.jobs().get()
    assert job.error_code == "llm_refused"
    assert job.failed_at is not None
    assert models.ModelCall.objects.get().outcome == models.CallOutcome.FAILED
    assert models.ExtractionCursor.objects.get().last_number == 0


def test_a_conversation_that_is_not_quiet_waits(
    program: Program, add_message: AddMessage, answer: SetAnswer
) -> None:
    add_message("I live in Oslo.", created_at=timezone.now())
    runs.extract(cursor_id())
    job = runs.EXTRACTIONS.jobs().get()
    assert (job.attempts, job.last_error, job.begun_at) == (0, "", None)
    assert job.due_at > timezone.now() + timedelta(seconds=500)
    assert not models.ExtractionRun.objects.exists()
    program.agent.extraction_batch_size = 2
    program.agent.save()
    add_message("And you?", created_at=timezone.now())
    answer(fact("Oslo", "I live in Oslo"))
    runs.extract(cursor_id())
    assert models.ExtractionRun.objects.get().state == models.RunState.APPLIED


def test_an_agent_that_is_switched_off_continues_later(
    program: Program, add_message: AddMessage, answer: SetAnswer
) -> None:
    add_message("I live in Oslo.")
    program.agent.extracts_facts = False
    program.agent.save()
    runs.extract(cursor_id())
    assert runs.EXTRACTIONS.jobs().get().last_error == runs.SWITCHED_OFF
    add_message("I like it.", thread_id="another")
    assert models.ExtractionCursor.objects.count() == 1
    program.agent.extracts_facts = True
    program.agent.save()
    answer(fact("Oslo", "I live in Oslo"))
    runs.extract(cursor_id())
    assert MemoryEntry.objects.get().value == "Oslo"


def test_tokens_of_a_day_are_limited(
    program: Program, add_message: AddMessage, answer: SetAnswer, settings: Any
) -> None:
    program.agent.extraction_max_tokens_per_day = 5_000
    program.agent.save()
    settings.LLM_PRICE_PROMPT, settings.LLM_PRICE_COMPLETION = Decimal(2), Decimal(10)
    add_message("I live in Oslo.")
    answer(fact("Oslo", "I live in Oslo"), prompt_tokens=4_000, completion_tokens=500)
    runs.extract(cursor_id())
    assert models.ExtractionRun.objects.get().cost == Decimal("0.013")
    add_message("I like it.")
    runs.extract(cursor_id())
    job = runs.EXTRACTIONS.jobs().get()
    assert "4,500 of 5,000 tokens" in job.last_error
    assert (job.attempts, job.begun_at) == (0, None)
    midnight = (timezone.now() + timedelta(days=1)).astimezone(UTC).replace(hour=0, minute=0)
    assert abs(job.due_at - midnight) < timedelta(minutes=2)
    (today,) = usage.model_usage(since=timezone.now() - timedelta(days=1))
    assert (today.calls, today.prompt_tokens, today.cost) == (1, 4_000, Decimal("0.013"))
    with pytest.raises(ExtractionLimitReached):
        runs.preview(messages=[*Message.objects.all()], requested_by="person:1")


def test_preview_changes_nothing_and_can_be_applied_and_rolled_back(
    program: Program, add_message: AddMessage, answer: SetAnswer
) -> None:
    message = add_message("I live in Oslo.")
    answer(fact("Oslo", "I live in Oslo"), fact("cats", "I like cats"))
    run = runs.preview(messages=[message], requested_by="person:1")
    assert (run.state, run.requested_by) == (models.RunState.PREVIEW, "person:1")
    assert [candidate["outcome"] for candidate in run.candidates] == ["active", "refused"]
    assert run.candidates[0]["memory_id"] is None
    assert run.result["refused"] == {"quote not in message": 1}
    for table in (MemoryEntry, FactEvidence, FactEvent):
        assert not table.objects.exists()
    assert models.ExtractionCursor.objects.get().last_number == 0

    runs.apply(run.pk)
    assert MemoryEntry.objects.get().run_id == run.pk
    with pytest.raises(WrongState):
        runs.apply(run.pk)
    curator = Author(AuthorKind.PERSON, "1", "curator")
    previewed = runs.preview_roll_back(run.pk, author=curator)
    assert [fact.content for fact in previewed["removed"]] == [MemoryEntry.objects.get().content]
    counts = runs.roll_back(run.pk, author=curator)
    assert counts == {"removed": 1, "restored": 0, "kept": 0}
    assert runs.get_run(run.pk).state == models.RunState.ROLLED_BACK
    assert not MemoryEntry.objects.exists()
    with pytest.raises(WrongState):
        runs.roll_back(run.pk, author=curator)


def test_a_run_is_replayed_with_another_model_and_compared(
    add_message: AddMessage, answer: SetAnswer, llm_server: LLMServer
) -> None:
    add_message("I live in Oslo, and I like tea.")
    tea = fact("tea", "I like tea", slot="drink", fact="Maria likes tea.", multi=True)
    answer(fact("Oslo", "I live in Oslo"), tea)
    runs.extract(cursor_id())
    first = models.ExtractionRun.objects.get()
    answer(fact("Norway", "I live in Oslo"), tea)
    second = runs.replay(first.pk, requested_by="person:1", model="larger")
    assert (second.state, second.replay_of, second.model) == (
        models.RunState.PREVIEW, first.pk, "larger",
    )  # fmt: skip
    assert llm_server.requests[-1].body["model"] == "larger"
    assert [candidate["outcome"] for candidate in second.candidates] == ["active", "unchanged"]
    compared = runs.compare(first, second)
    assert [candidate["value"] for candidate in compared["both"]] == ["tea"]
    assert [candidate["value"] for candidate in compared["only_first"]] == ["Oslo"]
    ((before, after),) = compared["changed"]
    assert (before["value"], after["value"]) == ("Oslo", "Norway")
    assert MemoryEntry.objects.count() == 2


def test_equal_ids_of_two_tenants_are_separate(
    program: Program,
    add_message: AddMessage,
    answer: SetAnswer,
    tenant_b: Tenant,
    make_program: Callable[[Tenant], Program],
) -> None:
    other = make_program(tenant_b)
    with tenant_scope(tenant_b.id):
        models.Agent.objects.update(extracts_facts=True)
        values = {"agent_id": other.agent.id, "user_id": "maria", "thread_id": "t1"}
        other_message, _ = record_message(
            tenant_id=tenant_b.id, channel="rest", role="user", content="I live in Rome.",
            created_at=timezone.now() - timedelta(days=1), **values,
        )  # fmt: skip
        runs.enqueue(tenant_b.id, [Thread.of(other_message)])
        connection.cursor().execute("SELECT 1")
    add_message("I live in Oslo.")
    answer(fact("Oslo", "I live in Oslo"))
    runs.extract(cursor_id())
    with tenant_scope(tenant_b.id):
        assert runs.EXTRACTIONS.jobs().count() == 1
        assert not MemoryEntry.objects.exists()
        assert models.ExtractionCursor.objects.get().last_number == 0
