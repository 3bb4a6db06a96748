"""The tasks: a worker embeds waiting messages, and a sweep finds forgotten ones."""

import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from konstruct.celery import app
from konstruct.orchestrator.tasks import measure_usage, write_thread_states
from memory import tasks
from memory.conversations.transcript import EMBEDDINGS
from memory.indexing import embedding_jobs
from memory.tasks import embed_and_store
from tenants.context import tenant_scope
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
    assert embed_and_store(str(tenant_a.id), [str(first.id)]) == 1
    assert embed_and_store(str(tenant_a.id), [str(first.id)]) == 0
    assert waiting(tenant_a.id) == [second.content]
    assert embed_and_store(tenant_a.id) == 1
    assert stored(tenant_a.id) == {sentence(1): 1, sentence(2): 1}


def test_a_large_outbox_is_done_in_turns_with_other_tenants(
    tenant_a, add_message, enqueued, monkeypatch
):
    monkeypatch.setattr(embedding_jobs, "OUTBOX_BATCH", 2)
    monkeypatch.setattr(tasks, "OUTBOX_TASK_LIMIT", 4)
    for number in range(6):
        add_message(tenant_a.id, sentence(number))
    assert embed_and_store(tenant_a.id) == 4
    assert enqueued() == [("memory.tasks.embed_and_store", str(tenant_a.id), None)]
    assert embed_and_store(tenant_a.id) == 2
    assert enqueued() == []


def test_beat_and_queues_know_the_tasks(settings):
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled == {sweep.name, measure_usage.name, write_thread_states.name}
    assert settings.CELERY_BEAT_SCHEDULE["measure_usage"]["options"]["queue"] == "sweeps"
    for task, queue in ((embed_and_store, "embeddings"), (sweep, "sweeps")):
        assert app.amqp.router.route({}, task.name)["queue"].name == queue


# A worker that dies over one message, as for lack of memory.
DEADLY = """
    import os, signal
    from konstruct.celery import app
    import django
    django.setup()
    from memory.indexing import embedding_jobs

    index = embedding_jobs.index_messages

    def index_or_die(messages, embedded):
        index(messages, embedded)
        if any("poison" in message.content for message in messages):
            os.kill(os.getpid(), signal.SIGKILL)

    embedding_jobs.index_messages = index_or_die
"""


@pytest.mark.data
def test_a_message_that_kills_its_worker_is_found_out(
    process_environment, tenant_a, add_message, enqueued, tmp_path: Path
):
    for number in range(4):
        add_message(tenant_a.id, sentence(number))
    add_message(tenant_a.id, "This is poison.")
    for number in range(4, 8):
        add_message(tenant_a.id, sentence(number))
    (tmp_path / "deadly.py").write_text(textwrap.dedent(DEADLY))
    command = [
        *(sys.executable, "-m", "celery", "--app", "deadly", "worker"),
        *("--queues", "embeddings", "--pool", "threads", "--concurrency", "1"),
    ]

    def start() -> subprocess.Popen[bytes]:
        """Start a worker like its supervisor."""
        environment = {**process_environment, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
        with (tmp_path / "log").open("a") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    worker, killed = start(), 0
    try:
        for _ in range(300):
            if waiting(tenant_a.id) == ["This is poison."]:
                break
            embed_and_store.delay(str(tenant_a.id))  # as a sweep does once the leases have ended
            if worker.poll() is not None:
                killed += 1
                assert worker.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
                worker = start()
            time.sleep(1)
        assert killed
        assert stored(tenant_a.id) == {sentence(number): 1 for number in range(8)}
        with tenant_scope(tenant_a.id):
            assert EMBEDDINGS.jobs().get().attempts >= 1
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(timeout=60)
        finally:
            worker.kill()


def test_tenant_ids_are_checked(db):
    with pytest.raises(ValueError, match="is not the id"):
        embed_and_store("acme")
    with pytest.raises(LookupError):
        embed_and_store(str(UUID(int=1)))
