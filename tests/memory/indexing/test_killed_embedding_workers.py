"""Killed workers of the outbox: no message is lost or stored twice."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from konstruct.processes import is_alive
from memory.conversations.transcript import EMBEDDINGS
from memory.indexing import drain
from memory.models import IndexedMessage
from tenants.context import tenant_scope
from tests.memory.pending import sentence, stored, waiting

ROOT = Path(__file__).resolve().parents[3]

# One process loads the slow imports and the model, and forks each worker, which connects itself.
WORKERS = """
    import os, signal, sys
    import django
    django.setup()
    from memory.embedding import embedder
    from memory import indexing
    from tenants.jobs import JobKind

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    def work(tenant, where):
        indexing.OUTBOX_BATCH = 4
        index, store = indexing.index_messages, indexing._store
        embed, batches = indexing.embed_messages, []

        def embed_or_die(messages, embedder):
            if where == "in the model" and len(batches) == 1:
                die()
            return embed(messages, embedder)

        def count(messages, embedded):
            batches.append(messages)
            index(messages, embedded)
            if where == "after the vectors" and len(batches) == 2:
                die()

        def store_and_die(*arguments):
            done = store(*arguments)
            if where == "after the commit" and len(batches) == 2:
                die()
            return done

        indexing.index_messages, indexing._store = count, store_and_die
        indexing.embed_messages = embed_or_die
        if where == "before the commit":
            finish = JobKind.finish_many

            def finish_and_die(self, keys):
                finish(self, keys)
                if len(batches) == 2:
                    die()

            JobKind.finish_many = finish_and_die
        indexing.drain(tenant)
        os._exit(0)

    embedder.load_before_fork()
    for line in sys.stdin:
        worker = os.fork()
        if worker == 0:
            work(*line.rstrip().split(" ", 1))
        print(worker, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
"""


class Workers:
    """Start one worker after the other, and report how each ended."""

    def __init__(self, process):
        self.process = process

    def start(self, tenant_id, where):
        """Start a worker that drains the tenant's outbox and dies there. Return its process id."""
        print(tenant_id, where, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def wait(self):
        """Wait for its end. Return its exit status."""
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def workers(environment_of_processes):
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKERS)],
        cwd=ROOT,
        env=environment_of_processes,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Workers(process)


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("in the model", 6),
        ("after the vectors", 6),
        ("before the commit", 6),
        ("after the commit", 2),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_killed_worker_causes_no_loss_and_no_duplicates(
    workers, tenant_a, add_message, where, left
):
    for number in range(10):
        add_message(tenant_a.id, sentence(number))
    workers.start(tenant_a.id, where)
    assert workers.wait() == -signal.SIGKILL
    assert len(waiting(tenant_a.id)) == left
    assert len(stored(tenant_a.id)) == 10 - left
    # The last batch is the dead worker's until its leases end.
    if where != "after the commit":
        assert drain(tenant_a.id).stored == left - 4
    _end_leases(tenant_a.id)
    assert drain(tenant_a.id).stored == (4 if where != "after the commit" else left)
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(10)}
    assert waiting(tenant_a.id) == []
    with tenant_scope(tenant_a.id):
        assert IndexedMessage.objects.count() == 10


@pytest.mark.data
@pytest.mark.django_db(transaction=True)
def test_workers_killed_at_any_moment_cause_no_loss_and_no_duplicates(
    workers, tenant_a, add_message
):
    total = 160
    for number in range(total):
        add_message(tenant_a.id, sentence(number))
    for moment in (0.0, 0.05):
        before = len(stored(tenant_a.id))
        worker = psutil.Process(workers.start(tenant_a.id, "nowhere"))
        while is_alive(worker) and len(stored(tenant_a.id)) == before:
            time.sleep(0.01)
        time.sleep(moment)
        worker.kill()
        assert workers.wait() == -signal.SIGKILL
        assert before < len(stored(tenant_a.id)) < total
        assert len(waiting(tenant_a.id)) + len(stored(tenant_a.id)) == total
    _end_leases(tenant_a.id)
    drain(tenant_a.id)
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(total)}
    assert waiting(tenant_a.id) == []


def _end_leases(tenant_id):
    """End the leases of dead workers, as the processes of other workers do."""
    with tenant_scope(tenant_id):
        EMBEDDINGS.jobs().update(leased_until=None, worker=None)
