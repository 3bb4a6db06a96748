"""The tasks: a worker embeds waiting messages, and a sweep finds forgotten ones."""

from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from konstruct.celery import app
from konstruct.orchestrator.tasks import measure_usage, write_thread_states
from memory import indexing, tasks
from tenants.tasks import sweep
from tests.memory.pending import sentence, stored, waiting

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def enqueued():
    """Record the tasks enqueued for the embedding workers: name and arguments."""
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("embeddings")
        queue.clear()

        def take():
            durations = []
            with suppress(queue.Empty):
                while True:
                    message = queue.get_nowait()
                    durations.append((message.headers["task"], *message.payload[0]))
                    message.ack()
            return durations

        yield take
        queue.clear()
        queue.close()


def test_task_stores_its_messages(tenant_a, add_message):
    first, second = add_message(tenant_a.id, sentence(1)), add_message(tenant_a.id, sentence(2))
    assert tasks.embed_and_store(str(tenant_a.id), [str(first.id)]) == 1
    assert tasks.embed_and_store(str(tenant_a.id), [str(first.id)]) == 0
    assert waiting(tenant_a.id) == [second.content]
    assert tasks.embed_and_store(tenant_a.id) == 1
    assert stored(tenant_a.id) == {sentence(1): 1, sentence(2): 1}


def test_a_large_outbox_is_done_in_turns_with_other_tenants(
    tenant_a, add_message, enqueued, monkeypatch
):
    monkeypatch.setattr(indexing, "OUTBOX_BATCH", 2)
    monkeypatch.setattr(tasks, "OUTBOX_TASK_LIMIT", 4)
    for number in range(6):
        add_message(tenant_a.id, sentence(number))
    assert tasks.embed_and_store(tenant_a.id) == 4
    assert enqueued() == [("memory.tasks.embed_and_store", str(tenant_a.id), None)]
    assert tasks.embed_and_store(tenant_a.id) == 2
    assert enqueued() == []


def test_beat_and_queues_know_the_tasks(settings):
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled == {sweep.name, measure_usage.name, write_thread_states.name}
    assert settings.CELERY_BEAT_SCHEDULE["measure_usage"]["options"]["queue"] == "sweeps"
    for task, queue in ((tasks.embed_and_store, "embeddings"), (sweep, "sweeps")):
        assert app.amqp.router.route({}, task.name)["queue"].name == queue


def test_tenant_ids_are_checked(db):
    with pytest.raises(ValueError, match="is not the id"):
        tasks.embed_and_store("acme")
    with pytest.raises(LookupError):
        tasks.embed_and_store(str(UUID(int=1)))
