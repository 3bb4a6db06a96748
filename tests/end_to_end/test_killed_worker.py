"""After any kill, flush or restart, every message has one reply, remembered once."""

import pytest

from tests.end_to_end.deployment import Deployment, Tenant, eventually
from tests.end_to_end.worker import POINTS
from tests.servers.llm import Answer


@pytest.fixture
def tenant(deployment: Deployment) -> Tenant:
    return deployment.tenants[1]


def hold_the_language_model(deployment: Deployment, requests: int) -> None:
    """Make the next requests to the language model wait."""
    deployment.llm.answers = [Answer({"content": "At last."}, wait=True)] * requests


# A worker of replies and one of embeddings.
FEW_POINTS = ["before append_to_window", "after index_messages"]
# Fewer than the attempts after which a reply is given up, because each kill ends one attempt.
DEATHS_AT_ONCE = 3


@pytest.mark.parametrize(
    "points",
    [FEW_POINTS, pytest.param(POINTS, marks=pytest.mark.data)],
    ids=["some", "every"],
)
def test_a_worker_killed_at_steps_of_a_reply(
    deployment: Deployment, tenant: Tenant, points: list[str]
) -> None:
    for start in range(0, len(points), DEATHS_AT_ONCE):
        deployment.order_deaths(points[start : start + DEATHS_AT_ONCE])
        rounds = 0
        while deployment.open_orders():
            rounds += 1
            assert rounds <= DEATHS_AT_ONCE, f"no process reached {deployment.open_orders()}"
            sent = [
                tenant.send(f"Message {rounds} to mortal workers.", thread_id=f"mortal {number}")
                for number in range(3)
            ]
            for message_id in sent:
                tenant.wait_for(message_id)
            eventually(tenant.is_settled, "not everything is embedded")
    tenant.assert_whole()


@pytest.mark.data
def test_all_workers_killed_during_a_model_call(deployment: Deployment, tenant: Tenant) -> None:
    hold_the_language_model(deployment, 2)
    sent = [tenant.send("Think hard.", thread_id=f"think {number}") for number in range(2)]
    deployment.llm.wait_for_requests(2)
    deployment.worker.kill()
    for message_id in sent:
        assert tenant.wait_for(message_id)["reply"]["content"] == "Noted."
    deployment.llm.release()
    tenant.assert_whole()


@pytest.mark.data
def test_messages_of_a_thread_are_answered_in_order_through_all_of_this(
    deployment: Deployment, tenant: Tenant
) -> None:
    sent = [tenant.send(f"Number {number}.", thread_id="order") for number in range(8)]
    deployment.worker.kill()
    for message_id in sent:
        tenant.wait_for(message_id)
    tenant.assert_whole()
    answered = tenant.rows(
        "SELECT asked.id::text FROM memory_message reply"
        " JOIN memory_message asked ON asked.id = reply.in_reply_to_id"
        " WHERE asked.thread_id = 'order' ORDER BY reply.number"
    )
    assert [message_id for (message_id,) in answered] == sent


def test_message_is_retried_after_an_outage_of_the_language_model(
    deployment: Deployment, tenant: Tenant
) -> None:
    deployment.llm.answers = [Answer("busy", 503)] * 4
    message_id = tenant.send("Are you there?", thread_id="away")
    assert tenant.wait_for(message_id)["reply"]["content"] == "Noted."
    assert len(deployment.llm.requests) == 5
    tenant.assert_whole()
