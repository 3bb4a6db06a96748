"""The transcript: a message is stored once and verbatim, with its jobs."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError
from django.utils import timezone

from memory.conversations.transcript import record_message
from memory.exceptions import InvalidArgument
from memory.models import Message, PendingEmbedding
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.exceptions import InvalidTenantId, TenantPinned, UnknownTenant
from tenants.models import Job

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
VALUES = {
    "agent_id": AGENT,
    "user_id": "U024BE7LH",
    "thread_id": "C1",
    "channel": "rest",
    "role": "user",
    "content": "My sister lives in Lisbon.",
}


def counts(tenant_id):
    with tenant_scope(tenant_id):
        return Message.objects.count(), PendingEmbedding.objects.count()


def test_message_is_stored_verbatim_with_an_embedding_job(tenant_a):
    before = timezone.now()
    message, created = record_message(tenant_id=tenant_a.id, **VALUES, name="Ann")
    assert created is True
    with tenant_scope(tenant_a.id):
        row = Message.objects.get()
        pending = PendingEmbedding.objects.get()
        job = Job.objects.get(kind="embedding")
    assert (row.id, row.number, row.tenant_id) == (message.id, message.number, tenant_a.id)
    assert {name: getattr(row, name) for name in VALUES} == VALUES
    assert (row.name, row.idempotency_key, row.external_id, row.in_reply_to_id) == (
        "Ann",
        None,
        None,
        None,
    )
    assert before - timedelta(minutes=1) < row.created_at < timezone.now() + timedelta(minutes=1)
    assert (pending.message_id, job.key) == (row.id, row.id)
    assert (job.attempts, job.last_error) == (0, "")
    assert job.due_at - pending.created_at < timedelta(minutes=1)


def test_numbers_grow_with_each_message(tenant_a):
    numbers = [record_message(tenant_id=tenant_a.id, **VALUES)[0].number for _ in range(3)]
    assert numbers == sorted(set(numbers))


def test_message_and_job_are_written_in_one_transaction(tenant_a):
    with tenant_scope(tenant_a.id), transaction.atomic():
        record_message(tenant_id=tenant_a.id, **VALUES)
        transaction.set_rollback(True)
    assert counts(tenant_a.id) == (0, 0)


def test_the_same_idempotency_key_is_the_same_message(tenant_a, tenant_b):
    first, created = record_message(tenant_id=tenant_a.id, **VALUES, idempotency_key="k1")
    again, created_again = record_message(
        tenant_id=tenant_a.id, **{**VALUES, "content": "Something else."}, idempotency_key="k1"
    )
    other, _ = record_message(tenant_id=tenant_b.id, **VALUES, idempotency_key="k1")
    assert (created, created_again) == (True, False)
    assert again.id == first.id
    assert again.content == VALUES["content"]
    assert other.id != first.id
    assert counts(tenant_a.id) == counts(tenant_b.id) == (1, 1)


def test_a_message_gets_one_reply(tenant_a):
    message, _ = record_message(tenant_id=tenant_a.id, **VALUES)
    reply = {**VALUES, "role": "assistant", "in_reply_to": message.id}
    first, created = record_message(tenant_id=tenant_a.id, **reply)
    again, created_again = record_message(
        tenant_id=tenant_a.id, **{**reply, "content": "Another reply."}
    )
    assert (created, created_again) == (True, False)
    assert again.id == first.id
    assert again.content == VALUES["content"]
    assert counts(tenant_a.id) == (2, 2)


def test_an_external_id_is_one_message_for_each_agent_and_user(tenant_a):
    places = [(AGENT, "ann"), (AGENT, "bob"), (uuid4(), "ann")]
    for agent, user in places * 2:
        record_message(
            tenant_id=tenant_a.id,
            **{**VALUES, "agent_id": agent, "user_id": user},
            external_id="x1",
        )
    assert counts(tenant_a.id) == (3, 3)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"agent_id": "helper"}, "agent_id='helper' is not a UUID"),
        ({"content": "a\x00b"}, r"content='a\\x00b' holds U\+0000 \(NUL\) at 1; remove it"),
        ({"content": "a\ud800"}, r"content holds half of a surrogate pair at 1: '\\ud800'"),
        ({"content": None}, "content=None is not text"),
        ({"thread_id": ""}, "thread_id='' is empty"),
        ({"role": "system"}, "role='system' is not one of user, assistant"),
        ({"name": None}, "name=None is not text"),
        ({"idempotency_key": ""}, "idempotency_key='' is empty"),
        ({"idempotency_key": "k" * 256}, "is longer than 255 characters"),
        ({"in_reply_to": "that one"}, "in_reply_to='that one' is not a UUID"),
        (
            {"created_at": datetime(2023, 5, 8)},  # noqa: DTZ001 - that is what is refused
            "created_at=2023-05-08 00:00:00 has no time zone",
        ),
    ],
)
def test_unstorable_message_is_named_and_not_stored(tenant_a, values, named):
    with pytest.raises(InvalidArgument, match=named):
        record_message(tenant_id=tenant_a.id, **{**VALUES, **values})
    assert counts(tenant_a.id) == (0, 0)


def test_reply_without_a_message_is_refused(tenant_a):
    with tenant_scope(tenant_a.id), transaction.atomic():
        record_message(tenant_id=tenant_a.id, **VALUES, in_reply_to=uuid4())
        with pytest.raises(IntegrityError, match="in_reply_to"):
            connection.check_constraints()
        transaction.set_rollback(True)
    assert counts(tenant_a.id) == (0, 0)


def test_message_of_an_unknown_tenant_is_refused(tenant_a, tenant_b):
    with pytest.raises(InvalidTenantId):
        record_message(tenant_id="acme", **VALUES)
    with pytest.raises(UnknownTenant):
        record_message(tenant_id=uuid4(), **VALUES)
    with tenant_scope(tenant_a.id), pytest.raises(TenantPinned):
        record_message(tenant_id=tenant_b.id, **VALUES)
    assert counts(tenant_b.id) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_the_same_message_from_many_at_once_is_one(tenant_a, run_concurrently):
    def accept(_):
        message, created = record_message(tenant_id=tenant_a.id, **VALUES, idempotency_key="k1")
        return message.id, created

    answers = run_concurrently(accept, list(range(8)))
    assert len({message_id for message_id, _ in answers}) == 1
    assert [created for _, created in answers].count(True) == 1
    assert counts(tenant_a.id) == (1, 1)
