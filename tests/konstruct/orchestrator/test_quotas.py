"""Quotas: hard limits refuse before a message is accepted, and accepted messages are answered."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from threading import Barrier
from types import ModuleType
from typing import Any

import pytest
from django.db import DatabaseError, connections
from django.utils import timezone
from langgraph.checkpoint.base import empty_checkpoint

from konstruct.api.auth import keys
from konstruct.api.auth.keys import issue_key, roll_key
from konstruct.channels import webhooks
from konstruct.orchestrator import language_models, pipeline, usage
from konstruct.orchestrator.dry_runs import ask_questions, enqueue_questions, save_question
from konstruct.orchestrator.exceptions import LimitReached
from konstruct.orchestrator.models import CallOutcome, DailyUsage
from memory.context.checkpoints import TenantPostgresSaver
from memory.indexing import drain
from memory.models import ConversationEmbedding, MemoryEntry, Message
from tenants.context import public_scope, tenant_connection, tenant_scope
from tenants.limits.quotas import Limit, Quota, QuotaExceeded, next_month, set_limits
from tenants.models import Tenant
from tenants.outbox.models import EventType, OutboxEvent, Subscription
from tests.jobs import work
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mcp.speaking import call, text_of
from tests.konstruct.metered import counts_of_month, metered_call
from tests.servers.llm import LLMServer
from tests.servers.mail import MailServer

FACTS = "/api/v1/facts/"
DAY = timedelta(days=1)


def limit(program: Program, quota: Quota, hard: int | None = None, soft: int | None = None) -> None:
    set_limits(
        program.tenant.id,
        {quota: Limit(*(None if limit is None else Decimal(limit) for limit in (soft, hard)))},
    )


def send_json(program: Program, method: str, path: str, **body: Any) -> Any:
    return program.write(method, path, body)


def measure(program: Program) -> dict[str, Any]:
    with public_scope():
        tenant = Tenant.objects.get(pk=program.tenant.id)
    return usage.measure(tenant)


def test_messages_are_refused_at_the_hard_limit_and_accepted_ones_answered(
    program_a: Program, program_b: Program
) -> None:
    limit(program_a, Quota.MESSAGES, hard=2)
    headers = {"Idempotency-Key": "first"}
    first = program_a.send("One", headers=headers)
    assert [first.status_code, program_a.send("Two").status_code] == [202, 202]
    refused = program_a.send("Three")
    assert refused.status_code == 429
    problem = refused.json()
    assert problem["type"] == "urn:konstruct:problem:quota-exceeded"
    assert (problem["quota"], problem["limit"], problem["used"]) == ("messages", "2", "2")
    assert problem["resets_at"] == f"{next_month(timezone.now()):%Y-%m-%dT%H:%M:%SZ}"
    assert 0 < int(refused["Retry-After"]) <= 31 * 24 * 3600
    assert refused["X-Should-Retry"] == "false"
    assert program_a.send("One", headers=headers).json()["id"] == first.json()["id"]
    assert program_b.send("Hello").status_code == 202
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.filter(role="user").count() == 2
        pipeline.handle(tenant_id=program_a.tenant.id, message_id=first.json()["id"])
        assert Message.objects.filter(role="assistant").count() == 2
    assert program_a.get("/api/v1/messages/").status_code == 200
    limit(program_a, Quota.MESSAGES)
    assert program_a.send("Three").status_code == 202


@pytest.mark.django_db(transaction=True)
def test_messages_at_once_fill_the_hard_limit_exactly(program_a: Program) -> None:
    limit(program_a, Quota.MESSAGES, hard=5)
    at_once = Barrier(12)

    def send(number: int) -> int:
        try:
            at_once.wait()
            return program_a.send(f"Message {number}").status_code
        finally:
            connections.close_all()

    try:
        with ThreadPoolExecutor(12) as threads:
            statuses = sorted(threads.map(send, range(12)))
    finally:
        limit(program_a, Quota.MESSAGES)  # it is committed, and other tests use this tenant
    assert statuses == [202] * 5 + [429] * 7
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.filter(role="user").count() == 5
        assert counts_of_month().messages == 5


def test_tokens_and_money_are_of_this_month(program_a: Program) -> None:
    limit(program_a, Quota.TOKENS, hard=200)
    with tenant_scope(program_a.tenant.id):
        metered_call(created_at=timezone.now() - timedelta(days=40))
        metered_call()
    assert program_a.send("One").status_code == 202
    with tenant_scope(program_a.tenant.id):
        metered_call(CallOutcome.FAILED, cost=Decimal("0.5"))
    assert program_a.send("Two").json()["quota"] == "tokens"
    limit(program_a, Quota.TOKENS)
    set_limits(program_a.tenant.id, {Quota.COST: Limit(hard=Decimal("0.75"))})
    assert program_a.send("Two").json()["quota"] == "cost"
    with tenant_scope(program_a.tenant.id), pytest.raises(QuotaExceeded):
        usage.require_room(usage.MODEL_CALL_QUOTAS)


def test_limits_of_a_month_are_free_again_in_the_next_one(program_a: Program) -> None:
    """The counts become those of the last day of the previous month; the process continues."""
    limit(program_a, Quota.MESSAGES, hard=2)
    assert [program_a.send("Hello").status_code for _ in range(3)] == [202, 202, 429]
    with tenant_scope(program_a.tenant.id):
        DailyUsage.objects.update(day=usage.first_of_month() - DAY)
    assert [program_a.send("Hello").status_code for _ in range(3)] == [202, 202, 429]
    with tenant_scope(program_a.tenant.id):
        assert list(DailyUsage.objects.order_by("day").values_list("messages", flat=True)) == [2, 2]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_month_begins_at_midnight_utc(program_a: Program, zone: str) -> None:
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    before = midnight - timedelta(microseconds=1)
    november, december = date(2026, 11, 1), date(2026, 12, 1)
    with timezone.override(zone), tenant_scope(program_a.tenant.id):
        here = timezone.get_current_timezone()
        for moment, first in ((before, november), (midnight, december)):
            assert usage.first_of_month(moment.astimezone(here)) == first
            assert next_month(moment.astimezone(here)).date() == (first + 31 * DAY).replace(day=1)
            metered_call(created_at=moment)
            assert DailyUsage.objects.get(day=moment.date()).calls == 1
        # The current count, on the day in UTC of Postgres.
        tenant_connection().set_local({"TimeZone": zone})
        usage.count(messages=1)
        assert DailyUsage.objects.get(messages=1).day == timezone.now().astimezone(UTC).date()


@pytest.mark.parametrize(("quota", "status"), [(Quota.MESSAGES, 429), (Quota.MEMORIES, 402)])
def test_a_bound_key_reads_no_numbers_of_the_tenant(
    program_a: Program, quota: Quota, status: int
) -> None:
    limit(program_a, quota, hard=0)
    widget = program_a.with_key(name="widget", user_id="maria")
    for headers in ({}, {"Accept": "text/event-stream"}):
        refused = widget.send("Hello", headers=headers)
        problem = refused.json()
        assert refused.status_code == status
        assert not problem.keys() & {"quota", "limit", "used", "remedy"}
        assert problem["detail"] == problem["message_for_people"]
        assert problem["detail"].startswith("No more messages can be taken")
    problem = program_a.send("Hello").json()
    assert (problem["quota"], problem["used"]) == (quota.value, "0")
    assert problem["message_for_people"] == refused.json()["detail"]


def test_standing_limits_want_another_plan(program_a: Program) -> None:
    limit(program_a, Quota.MEMORIES, hard=1)
    fact = {"content": "Maria likes tea.", "agent": "ada", "user_id": "maria"}
    assert program_a.post(FACTS, fact).status_code == 201
    refused = program_a.post(FACTS, {**fact, "content": "Maria likes rum."})
    assert (refused.status_code, refused.json()["resets_at"]) == (402, None)
    assert "Retry-After" not in refused
    line = {"agent": "ada", "user_id": "maria", "thread_id": "t", "role": "user", "content": "Hi"}
    for path in ("facts/batch/", "messages/import/"):
        body = {"facts": [fact]} if "facts" in path else {"messages": [line]}
        answer = program_a.post(f"/api/v1/{path}", body)
        assert answer.status_code in (402, 404), answer.content
    with tenant_scope(program_a.tenant.id):
        assert MemoryEntry.objects.count() == 1
    assert program_a.send("Hello").status_code == 402
    assert program_a.get(FACTS).status_code == 200


def test_a_version_of_a_fact_is_a_memory_in_every_interface(program_a: Program) -> None:
    made = program_a.post(FACTS, {"content": "Maria likes tea.", "agent": "ada", "user_id": "m"})
    fact = f"{FACTS}{made.json()['memory_id']}/"
    limit(program_a, Quota.MEMORIES, hard=4)
    assert send_json(program_a, "PATCH", fact, content="Maria likes 0.").status_code == 200
    fact_id = made.json()["memory_id"]
    assert not call(program_a, "correct", id=fact_id, content="Maria likes 1.").get("isError")
    memory = f"/mem0/v1/memories/{made.json()['memory_id']}/"
    assert send_json(program_a, "PUT", memory, text="Maria likes 2.").status_code == 200
    refused = (
        send_json(program_a, "PATCH", fact, content="Maria likes 3."),
        send_json(program_a, "PUT", memory, text="Maria likes 4."),
    )
    assert [answer.status_code for answer in refused] == [402, 402]
    answer = call(program_a, "correct", id=fact_id, content="Maria likes 5.")
    assert (answer["isError"], "quota is used up" in text_of(answer)) == (True, True)
    with tenant_scope(program_a.tenant.id):
        assert MemoryEntry.objects.count() == 4


def test_a_long_message_counts_its_pieces(program_a: Program) -> None:
    text = " ".join(f"This is the sentence of the long message number {n}." for n in range(30))
    line = {"agent": "ada", "user_id": "maria", "thread_id": "t", "role": "user", "content": text}
    limit(program_a, Quota.MEMORIES, hard=50)
    assert program_a.send(text).status_code == 202
    drain(program_a.tenant.id)
    with tenant_scope(program_a.tenant.id):
        pieces = ConversationEmbedding.objects.count()
        assert (pieces, DailyUsage.objects.get().memories) == (30, 30)
    assert program_a.send(text).status_code == 402
    imported = program_a.post("/api/v1/messages/import/", {"messages": [line]})
    assert imported.status_code in (402, 404)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_batches_at_once_do_not_exceed_a_limit(program_a: Program) -> None:
    limit(program_a, Quota.MEMORIES, hard=50)
    barrier = Barrier(4)

    def add(number: int) -> int:
        facts = [{"content": f"Fact {number} {n}.", "agent": "ada"} for n in range(20)]
        try:
            barrier.wait(30)
            return int(program_a.post(f"{FACTS}batch/", {"facts": facts}).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        codes = sorted(threads.map(add, range(4)))
    assert codes == [200, 200, 402, 402]
    with tenant_scope(program_a.tenant.id):
        assert MemoryEntry.objects.count() == 40


def test_used_tokens_stop_every_request_to_a_model(
    program_a: Program, llm_server: LLMServer, settings: Any
) -> None:
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    program_a.send("I live in Oslo.", user_id="maria", thread_id="t1")
    limit(program_a, Quota.TOKENS, hard=100)
    with tenant_scope(program_a.tenant.id):
        metered_call()
        agent = program_a.agent
        save_question(agent, content="Where?")
        enqueue_questions(agent.pk)
        ask_questions(agent.pk)
    previewed = {"agent": "ada", "user_id": "maria", "thread_id": "t1"}
    assert program_a.post("/api/v1/extraction-runs/", previewed).status_code == 422
    added = {"messages": "I moved.", "user_id": "maria", "agent_id": "ada"}
    program_a.post("/mem0/v3/memories/add/", added)
    dry_run = program_a.post(f"/api/v1/agents/{agent.pk}/dry-runs/", {"content": "Hi"})
    assert dry_run.status_code == 429
    assert llm_server.requests == []


def test_storage_is_refused_as_it_was_measured(program_a: Program) -> None:
    limit(program_a, Quota.STORAGE, hard=1)
    assert program_a.send("One").status_code == 202
    measured = measure(program_a)
    assert measured["storage_bytes"] > 100_000
    assert measured["reached"]["storage_bytes"]["level"] == "hard"
    assert program_a.send("Two").json()["quota"] == "storage_bytes"
    agent = f"/api/v1/agents/{program_a.agent.pk}/"
    items = {"agent": "ada", "user_id": "maria", "thread_id": "t", "items": [{"item": {}}]}
    refused = (
        send_json(program_a, "POST", "/api/v1/agents/", name="Bea"),
        send_json(program_a, "PATCH", agent, persona="Kind."),
        send_json(program_a, "POST", f"{agent}questions/", content="Where?"),
        send_json(program_a, "POST", "/api/v1/conversations/items/", **items),
        send_json(program_a, "POST", "/api/v1/identities/", channel="slack", native_id="U1"),
    )
    assert [answer.status_code for answer in refused] == [402] * 5
    assert send_json(program_a, "PATCH", agent, is_active=False).status_code == 200
    saver, config = TenantPostgresSaver(program_a.tenant.id), {"configurable": {"thread_id": "t"}}
    for write in (
        lambda: saver.put(config, empty_checkpoint(), {}, {}),
        lambda: saver.put_writes(config, [("a", 1)], "task"),
    ):
        with pytest.raises(QuotaExceeded, match="Storage"):
            write()


def test_keys_are_limited_and_can_be_rolled(program_a: Program) -> None:
    limit(program_a, Quota.API_KEYS, hard=2)
    key, _ = issue_key(tenant_id=program_a.tenant.id, name="second")
    with pytest.raises(QuotaExceeded, match="API keys is limited to 2"):
        issue_key(tenant_id=program_a.tenant.id, name="third")
    with tenant_scope(program_a.tenant.id):
        new, _ = roll_key(key, grace=timedelta(hours=1))
        with pytest.raises(QuotaExceeded):
            roll_key(new, grace=timedelta(hours=1))


def test_a_quota_replaces_the_maximum_of_keys(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_API_KEYS", 1)
    with pytest.raises(LimitReached, match="Remove one first"):
        issue_key(tenant_id=program_a.tenant.id, name="second")
    limit(program_a, Quota.API_KEYS, hard=2)
    issue_key(tenant_id=program_a.tenant.id, name="second")


@pytest.mark.parametrize(
    ("module", "maximum", "path", "body"),
    [
        (webhooks, "MAX_WEBHOOKS", "webhooks", {"url": "https://hooks.example.com/in"}),
        (keys, "MAX_API_KEYS", "api-keys", {"name": "phone"}),
        (
            language_models,
            "MAX_LANGUAGE_MODELS",
            "language-models",
            {"name": "small", "endpoint": "https://models.example.com/v1"},
        ),
    ],
)
def test_a_row_beyond_the_maximum_is_refused_until_another_is_deleted(
    program_a: Program,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    maximum: str,
    path: str,
    body: dict[str, str],
) -> None:
    # The program's own key is the first one.
    monkeypatch.setattr(module, maximum, 2 if module is keys else 1)
    first = program_a.post(f"/api/v1/{path}/", body)
    assert first.status_code == 201, first.content
    # No name is taken twice.
    other = body | {"name": "large"} if "name" in body else body
    refused = program_a.post(f"/api/v1/{path}/", other)
    kind = "urn:konstruct:problem:limit-reached"
    assert (refused.status_code, refused.json()["type"]) == (409, kind)
    assert "one first." in refused.json()["detail"]
    row = f"/api/v1/{path}/{first.json()['id']}/"
    assert program_a.request("DELETE", row).status_code == 204
    assert program_a.post(f"/api/v1/{path}/", other).status_code == 201


def test_requests_have_a_limit_of_their_own(program_a: Program, settings: Any) -> None:
    settings.RATE_LIMIT_PER_SECOND, settings.RATE_LIMIT_BURST = 100, 400
    assert program_a.get(FACTS)["RateLimit-Limit"] == "200"
    limit(program_a, Quota.REQUESTS, hard=1)
    answer = program_a.get(FACTS)
    assert answer["RateLimit-Limit"] == "2"
    statuses = {program_a.get(FACTS).status_code for _ in range(4)}
    assert statuses == {200, 429}


def test_the_team_is_notified_once_of_each_limit(program_a: Program, mail: MailServer) -> None:
    limit(program_a, Quota.MESSAGES, soft=1, hard=2)
    with tenant_scope(program_a.tenant.id):
        Subscription.objects.create(
            target="mail", addresses=["ops@example.com"], types=[EventType.QUOTA_REACHED]
        )
    program_a.send("One")
    for _ in range(2):
        measure(program_a)
        work("notification")
        assert len(mail.mails) == 1
    program_a.send("Two")
    assert measure(program_a)["reached"]["messages"]["level"] == "hard"
    work("notification")
    assert "nearly used up" in mail.mails[0]["Subject"]
    assert "is used up" in mail.mails[1]["Subject"]


def test_a_tenant_that_fails_is_left_to_the_next_run(
    program_a: Program, program_b: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = usage.measure

    def fails_for_a(tenant: Tenant) -> Any:
        if tenant.pk == program_a.tenant.id:
            raise DatabaseError("gone")
        return original(tenant)

    monkeypatch.setattr(usage, "measure", fails_for_a)
    usage.measure_due()
    with public_scope():
        assert "measured_at" not in Tenant.objects.get(pk=program_a.tenant.id).usage
        assert "measured_at" in Tenant.objects.get(pk=program_b.tenant.id).usage


def test_programs_read_quotas_and_bound_keys_do_not(program_a: Program) -> None:
    limit(program_a, Quota.MESSAGES, soft=8, hard=10)
    program_a.send("One")
    quotas = {quota["quota"]: quota for quota in program_a.get("/api/v1/usage/").json()["quotas"]}
    messages = quotas["messages"]
    assert (messages["used"], messages["soft_limit"], messages["hard_limit"]) == (1, 8, 10)
    assert messages["resets_at"] is not None
    assert quotas["memories"]["hard_limit"] is None
    bound = program_a.with_key(user_id="maria")
    assert "quotas" not in bound.get("/api/v1/usage/").json()


def test_a_newly_reached_quota_is_one_event(program_a: Program) -> None:
    limit(program_a, Quota.MEMORIES, soft=1)
    body = {"agent": "ada", "user_id": "maria", "content": "Maria has a dog."}
    assert program_a.post(FACTS, body).status_code == 201
    for _ in range(2):
        assert measure(program_a)["reached"].keys() == {Quota.MEMORIES}
    limit(program_a, Quota.API_KEYS, soft=1)
    measure(program_a)
    with tenant_scope(program_a.tenant.id):
        events = OutboxEvent.objects.filter(type=EventType.QUOTA_REACHED)
        assert sorted(events.values_list("detail", flat=True)) == ["api_keys", "memories"]
