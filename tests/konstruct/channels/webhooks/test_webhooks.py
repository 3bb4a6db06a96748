"""Webhooks: events that real receivers get, refuse, delay or never answer."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone
from standardwebhooks import Webhook as Receiver

from konstruct.channels import webhooks
from konstruct.channels.management.commands.reseal_channel_tokens import reencrypt_all
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.handoff.escalations import answer_as_person, resolve
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, AnswerOptions, Escalation
from konstruct.privacy.erasure.erasing import carry_out
from memory.facts.lifecycle import confirm, retract
from memory.models import Message
from memory.models.facts import Author, AuthorKind
from tenants import transaction
from tenants.audit.access_log import Actor
from tenants.context import tenant_scope
from tenants.limits.quotas import Quota
from tenants.models import Job
from tenants.outbox.events import events_after, record_event, remove_old_events
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType, OutboxEvent, Subscription
from tenants.secret_keys import SecretUnreadable
from tests import database
from tests.documentation.pages import DOCS
from tests.jobs import expire_leases, work
from tests.konstruct.channels.notifications.conftest import ask
from tests.konstruct.conftest import Program
from tests.konstruct.extracted import propose
from tests.konstruct.interfaces.openai.test_tools import WEATHER, calling
from tests.konstruct.orchestrator.history_import.test_uploads import (
    IMPORTS,
    body as upload,
    work as import_file,
)
from tests.konstruct.orchestrator.test_quotas import limit, measure
from tests.servers.llm import Answer, LLMServer


@pytest.fixture
def receiver(settings: Any) -> Iterator[LLMServer]:
    """The program: a server on loopback, which the operator allows."""
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as server:
        yield server


@pytest.fixture
def inside_a(program_a: Program) -> Iterator[Program]:
    """The program of tenant A; the test runs in its tenant."""
    with tenant_scope(program_a.tenant.id):
        yield program_a


def add(receiver: LLMServer, *types: str, **options: Any) -> str:
    """Create a webhook at the receiver; return its secret."""
    return webhooks.create_webhook(receiver.url, types=list(types), **options)[1]


def types(receiver: LLMServer) -> list[str]:
    return [request.body["type"] for request in receiver.requests]


def job() -> Job:
    return NOTIFICATIONS.jobs().get()


def work_when_due() -> None:
    """Run the jobs as if their pauses had passed."""
    NOTIFICATIONS.jobs().update(due_at="2000-01-01T00:00:00Z", sweep_at="2000-01-01T00:00:00Z")
    work("notification")


def test_events_of_a_conversation_arrive_signed_and_without_content(
    inside_a: Program, receiver: LLMServer
) -> None:
    Agent.objects.update(escalate_on=["human"])
    secret = add(receiver)
    ask(inside_a, "I want a human", user_id="maria")
    ask(inside_a, "Are you there?", user_id="maria")
    escalation = Escalation.objects.get()
    answer = answer_as_person(escalation.pk, "Yes, I am Eva.", name="Eva")
    resolve(escalation.pk, by="Eva", let_agent_answer=False)
    work("notification")
    assert sorted(types(receiver)) == sorted(
        [
            *("escalation.opened", "escalation.waiting", "message.answered"),
            *("escalation.waiting", "escalation.answered"),
            *("message.answered", "escalation.resolved"),
        ]
    )
    for request in receiver.requests:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["webhook-id"] == request.body["id"]
        assert request.body["data"]["user_id"] == "maria"
        assert request.body["data"].keys() <= {
            "id",
            "agent_id",
            "user_id",
            "thread_id",
            "message_id",
        }
    answered = next(r.body for r in receiver.requests if r.body["type"] == "escalation.answered")
    assert answered["data"]["message_id"] == str(answer.pk)
    assert answered["data"]["id"] == str(escalation.pk)
    assert secret.startswith("whsec_")
    assert not NOTIFICATIONS.jobs().exists()


def test_a_receiver_verifies_the_signature_by_the_library(
    inside_a: Program, receiver: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[bytes, dict[str, str]]] = []

    def post(url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> int:
        sent.append((body, headers))
        return 204

    monkeypatch.setattr(webhooks, "post", post)
    old = add(receiver)
    _, new = webhooks.rotate_secret(Subscription.objects.get().pk)
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    [(body, headers)] = sent
    for secret in (old, new):
        assert Receiver(secret).verify(body, headers)["type"] == "erasure.done"
    Subscription.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    record_event(EventType.ERASURE_DONE, UUID(int=2))
    work("notification")
    body, headers = sent[-1]
    assert Receiver(new).verify(body, headers)["data"]["id"] == str(UUID(int=2))
    assert len(headers["webhook-signature"].split()) == 1


def test_content_is_sent_on_request_as_it_is_now(inside_a: Program, receiver: LLMServer) -> None:
    add(receiver, "message.answered", includes_content=True)
    ask(inside_a, "My sister lives in Porto")
    work("notification")
    [request] = receiver.requests
    assert request.body["data"]["content"] == "My sister lives in Porto"
    assert request.body["data"]["reply_content"]


def test_other_types_and_switched_off_webhooks_get_nothing(
    inside_a: Program, receiver: LLMServer
) -> None:
    add(receiver, "fact.active")
    add(receiver)
    Subscription.objects.filter(types=[]).update(is_active=False)
    ask(inside_a, "Hello")
    assert OutboxEvent.objects.count() == 1
    assert not EventDelivery.objects.exists()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("", 500), "the status 500"),
        (Answer("", 302, {"Location": "http://169.254.169.254/"}), "the status 302"),
        (Answer("", 429), "the status 429"),
    ],
)
def test_a_failed_attempt_is_repeated_with_the_same_id(
    inside_a: Program, receiver: LLMServer, answer: Answer, reason: str
) -> None:
    add(receiver)
    receiver.answers = [answer]
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    assert job().last_error.endswith(f"{reason}.")
    assert EventDelivery.objects.get().status == answer.status
    work_when_due()
    first, second = (request.body for request in receiver.requests)
    assert first == second
    assert EventDelivery.objects.get().delivered_at is not None
    assert not NOTIFICATIONS.jobs().exists()


def test_a_hanging_receiver_ends_at_the_deadline(
    inside_a: Program, receiver: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.5)
    add(receiver)
    receiver.default = Answer("", wait=True)
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    assert job().last_error == "No response within 0.5 seconds."


def test_attempts_end_for_a_receiver_that_is_gone_or_refused(
    inside_a: Program, receiver: LLMServer, settings: Any
) -> None:
    add(receiver)
    receiver.answers = [Answer("", 410)]
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    assert job().failed_at is not None
    settings.WEBHOOK_HOSTS = []
    NOTIFICATIONS.retry(job().key)
    work("notification")
    assert job().failed_at is not None
    assert "https://" in job().last_error
    assert len(receiver.requests) == 1


def test_attempts_go_on_for_a_day() -> None:
    pauses = [
        min(NOTIFICATIONS.first_backoff * 2**number, NOTIFICATIONS.max_backoff)
        for number in range(NOTIFICATIONS.max_attempts - 1)
    ]
    assert timedelta(days=1) <= timedelta(seconds=sum(pauses)) < timedelta(days=1, hours=1)


def test_a_worker_killed_before_or_after_the_post_loses_nothing(
    inside_a: Program, receiver: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(receiver)
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    assert NOTIFICATIONS.lease(job().key) is not None  # killed before the POST
    expire_leases()

    def killed(*args: Any, **options: Any) -> int:
        original(*args, **options)
        raise KeyboardInterrupt

    original = webhooks.post
    with monkeypatch.context() as patch:
        patch.setattr(webhooks, "post", killed)
        with pytest.raises(KeyboardInterrupt):
            work("notification")
    work_when_due()  # a job whose worker died twice waits
    work_when_due()
    first, second = (request.body for request in receiver.requests)
    assert first["id"] == second["id"]
    assert EventDelivery.objects.get().delivered_at is not None


def test_a_change_that_is_rolled_back_has_no_event(inside_a: Program, receiver: LLMServer) -> None:
    add(receiver)
    with transaction.atomic():
        record_event(EventType.ERASURE_DONE, UUID(int=1))
        transaction.set_rollback(True)
    assert not OutboxEvent.objects.exists()
    assert not NOTIFICATIONS.jobs().exists()


def test_a_delivered_event_is_sent_again_on_request(inside_a: Program, receiver: LLMServer) -> None:
    add(receiver)
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    webhooks.send_again(EventDelivery.objects.get())
    work("notification")
    assert len(receiver.requests) == 2
    assert len({request.body["id"] for request in receiver.requests}) == 1


def test_webhooks_of_two_tenants_never_mix(
    program_a: Program, program_b: Program, settings: Any
) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as one, LLMServer() as other:
        for program, receiver in ((program_a, one), (program_b, other)):
            with tenant_scope(program.tenant.id):
                add(receiver)
                ask(program, "Hello")
        work("notification")
        with tenant_scope(program_a.tenant.id):
            stolen = Subscription.objects.get()
        with tenant_scope(program_b.tenant.id):
            own = Subscription.objects.get()
            Subscription.objects.update(secret=stolen.secret)
            ask(program_b, "Hello again")
        work("notification")
        with tenant_scope(program_b.tenant.id):
            # A secret of another tenant cannot be read.
            assert "encrypted for another place" in NOTIFICATIONS.jobs().get().last_error
            assert own.secret != stolen.secret
        agents = {request.body["data"]["agent_id"] for request in one.requests}
        assert agents == {str(program_a.agent.id)}
        assert len(other.requests) == 1


def test_secrets_are_read_after_the_keys_are_rotated(
    inside_a: Program, receiver: LLMServer, settings: Any
) -> None:
    add(receiver)
    webhooks.rotate_secret(Subscription.objects.get().pk)
    old = settings.CHANNEL_TOKEN_KEYS
    new = [Fernet.generate_key().decode()]
    settings.CHANNEL_TOKEN_KEYS = [*new, *old]
    assert reencrypt_all() == 1
    settings.CHANNEL_TOKEN_KEYS = new
    record_event(EventType.ERASURE_DONE, UUID(int=1))
    work("notification")
    [request] = receiver.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert len(headers["webhook-signature"].split()) == 2
    settings.CHANNEL_TOKEN_KEYS = old
    with pytest.raises(SecretUnreadable, match="enter the secret again"):
        reencrypt_all()


def test_numbers_follow_commits_and_grow_after_an_erasure(inside_a: Program) -> None:
    for number in range(3):
        record_event(EventType.ERASURE_DONE, UUID(int=number))
    events = list(events_after(0))
    assert [event.subject_id.int for event in events] == [0, 1, 2]
    last = events[-1].number or 0
    OutboxEvent.objects.all().delete()
    record_event(EventType.ERASURE_DONE, UUID(int=3))
    assert [event.subject_id.int for event in events_after(last)] == [3]


@pytest.mark.django_db(transaction=True)
def test_an_erasure_leaves_neither_events_nor_deliveries_of_the_person(
    inside_a: Program, receiver: LLMServer
) -> None:
    add(receiver)
    for user_id in ("maria", "bob"):
        ask(inside_a, "Hello", user_id=user_id)
    with database.as_owner(), tenant_scope(inside_a.tenant.id):
        carry_out(request_erasure("maria", by=Actor.operator("olga")))
    work("notification")
    assert {request.body["data"]["user_id"] for request in receiver.requests} == {"bob", None}
    assert set(OutboxEvent.objects.values_list("user_id", flat=True)) == {"bob", ""}
    assert not NOTIFICATIONS.jobs().exists()


def test_old_events_are_removed_with_their_deliveries(
    inside_a: Program, receiver: LLMServer
) -> None:
    add(receiver)
    for number in range(2):
        record_event(EventType.ERASURE_DONE, UUID(int=number))
    old = OutboxEvent.objects.filter(subject_id=UUID(int=0))
    old.update(created_at=timezone.now() - timedelta(days=31))
    remove_old_events()
    assert OutboxEvent.objects.get().subject_id == UUID(int=1)
    assert job().key == EventDelivery.objects.get().pk


@pytest.mark.django_db(transaction=True)
def test_each_type_of_event_is_documented_and_arrives_once(
    program_a: Program, receiver: LLMServer, llm_server: LLMServer, settings: Any
) -> None:
    settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    tenant_id, eva = program_a.tenant.id, Author(AuthorKind.PERSON, "1", "eva")
    limit(program_a, Quota.MEMORIES, soft=1)
    with tenant_scope(tenant_id):
        update_agent(program_a.agent, escalate_on=["human"])
        add(receiver)
        llm_server.answers = [Answer("no", 400), calling("weather")]
        ask(program_a, "Hello", thread_id="failed")
        options = AnswerOptions(options={"tools": [WEATHER]}, instructions=[])
        ask(program_a, "How is the weather?", thread_id="tools", options=options)
        ask(program_a, "I want a human")
        ask(program_a, "Are you there?")
        ask(program_a, "Hello?")
        answer_as_person(Escalation.objects.get().pk, "Yes, I am Eva.", name="Eva")
        resolve(Escalation.objects.get().pk, by="Eva", let_agent_answer=False)
        fact = propose(Message.objects.filter(role="user")[0], "H", "Says hello")
        confirm(fact.memory_id, author=eva)
    for place in ("Oslo", "Porto"):
        body = {"user_id": "maria", "content": f"In {place}", "slot": "home", "value": place}
        moved = program_a.post("/api/v1/facts/", {"agent": "ada", **body}).json()
    with tenant_scope(tenant_id):
        retract(moved["memory_id"], author=eva)
    import_file(program_a, program_a.post(IMPORTS, upload()).json()["id"])
    measure(program_a)
    with database.as_owner(), tenant_scope(tenant_id):
        work("notification")
        carry_out(request_erasure("nobody", by=Actor.operator("olga")))
        work("notification")
    documented = (DOCS / "webhooks.md").read_text()
    assert [name for name in EventType.values if f"`{name}`" not in documented] == []
    assert set(types(receiver)) == set(EventType.values)
    ids = [request.body["id"] for request in receiver.requests]
    assert len(ids) == len(set(ids))
    subjects = Counter((r.body["type"], r.body["data"]["id"]) for r in receiver.requests)
    assert {kind for (kind, _), count in subjects.items() if count > 1} == {"escalation.waiting"}
