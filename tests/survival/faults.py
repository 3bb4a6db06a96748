"""What can happen to a deployment: each function does one thing to it, and returns."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil
import psycopg
import redis

from konstruct.processes import working_in
from tests.end_to_end.deployment import Deployment, Supervised
from tests.survival.llm import EchoServer

Fault = Callable[[Deployment, Random], None]
POISONED = 3
# The workers of replies are the first of a deployment's workers.
REPLIES_WORKERS = 2
# Longer than leases are valid: see the test. The benchmark imports this without Django's settings.
STOPPED_SECONDS = 15.0
# The file in a deployment's home from which libfaketime reads by how much its clock is wrong.
CLOCK = "clock"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def kill_web(deployment: Deployment, random: Random) -> None:
    """As the end of its machine does."""
    deployment.web.kill()


def kill_worker(deployment: Deployment, random: Random) -> None:
    """Of one of the queues."""
    random.choice(deployment.workers).kill()


def stop_worker(deployment: Deployment, random: Random) -> None:
    """For longer than its leases are valid, or for a moment; then it goes on."""
    _stop(random.choice(deployment.workers), random.choice([1.0, STOPPED_SECONDS]))


def stop_replies_worker(deployment: Deployment, random: Random) -> None:
    """For longer than its leases are valid; then it goes on."""
    _stop(random.choice(deployment.workers[:REPLIES_WORKERS]), STOPPED_SECONDS)


def end_worker(deployment: Deployment, random: Random) -> None:
    """As a deployment of a new version does."""
    random.choice(deployment.workers).process.terminate()


def kill_beat(deployment: Deployment, random: Random) -> None:
    """Who enqueues the sweepers."""
    deployment.beat.kill()


def kill_valkey(deployment: Deployment, random: Random) -> None:
    """It comes back with what it had written down."""
    _signal(deployment, "valkey", "valkey-server", signal.SIGKILL)


def lose_valkey(deployment: Deployment, random: Random) -> None:
    """It comes back without its data."""
    with contextlib.suppress(redis.RedisError):
        deployment.lose_cache_and_broker()
    _signal(deployment, "valkey", "valkey-server", signal.SIGKILL)


def restart_valkey(deployment: Deployment, random: Random) -> None:
    """As an upgrade of the broker does: it ends in order, and comes back with its data."""
    _signal(deployment, "valkey", "valkey-server", signal.SIGTERM)


def kill_postgres(deployment: Deployment, random: Random) -> None:
    """The postmaster; its children follow."""
    _signal(deployment, "postgres", "postgres", signal.SIGKILL)


def crash_postgres(deployment: Deployment, random: Random) -> None:
    """An immediate shutdown: what comes next is a recovery."""
    _signal(deployment, "postgres", "postgres", signal.SIGQUIT)


def restart_postgres(deployment: Deployment, random: Random) -> None:
    """A fast shutdown."""
    _signal(deployment, "postgres", "postgres", signal.SIGINT)


def cut_connections(deployment: Deployment, random: Random) -> None:
    """Every connection that the application has to Postgres."""
    url = deployment.database_url.replace("konstruct_app", "postgres")  # and its password's file
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'konstruct_app'"
        )


def step_clock(deployment: Deployment, random: Random) -> None:
    """The clock of Postgres, which leases and jobs rely on: forward or back, by up to a minute.

    It stays so for longer than leases are valid, and steps back.
    """
    seconds = random.choice([4, -4, 60, -60])
    clock = deployment.home / CLOCK
    clock.write_text(f"{seconds:+}")
    time.sleep(STOPPED_SECONDS)
    with contextlib.suppress(psycopg.OperationalError):  # an earlier fault is not over yet
        ((now,),) = deployment.tenants[0].rows("SELECT extract(epoch FROM clock_timestamp())")
        assert abs(float(now) - time.time() - seconds) < 2, (now, seconds)
    clock.write_text("+0")


def stall_llm(deployment: Deployment, random: Random) -> None:
    """For a moment; who asks meanwhile waits."""
    assert isinstance(deployment.llm, EchoServer)
    with deployment.llm.stalled():
        time.sleep(random.uniform(0.5, 2))


def break_llm(deployment: Deployment, random: Random) -> None:
    """It is busy for some requests."""
    assert isinstance(deployment.llm, EchoServer)
    deployment.llm.break_down(random.randint(1, 4))


def poison_outbox(deployment: Deployment, random: Random) -> None:
    """Messages in the outbox of embeddings that can never be stored, due before all others."""
    tenant = random.choice(deployment.tenants)
    with contextlib.suppress(psycopg.OperationalError):
        tenant.rows(
            "WITH poisoned AS (INSERT INTO memory_message"
            " (agent_id, user_id, thread_id, channel, role, content)"
            " SELECT %s, 'poisoner', 't', 'import', 'user', 'poison' FROM generate_series(1, %s)"
            " RETURNING id, tenant_id), pending AS (INSERT INTO memory_pendingembedding"
            " (message_id, recall_trace)"
            ' SELECT id, \'{"no": "trace"}\' FROM poisoned)'
            " INSERT INTO tenants_job (tenant_id, kind, key, due_at, sweep_at)"
            " SELECT tenant_id, 'embedding', id, '2000-01-01', '2000-01-01' FROM poisoned"
            " RETURNING 1",
            tenant.agent_id,
            POISONED,
        )


FAULTS: tuple[Fault, ...] = (
    kill_web,
    kill_worker,
    stop_worker,
    stop_replies_worker,
    end_worker,
    kill_beat,
    kill_valkey,
    lose_valkey,
    restart_valkey,
    kill_postgres,
    crash_postgres,
    restart_postgres,
    cut_connections,
    stall_llm,
    break_llm,
    poison_outbox,
    *([step_clock] if FAKETIME else []),
)


def _stop(worker: Supervised, seconds: float) -> None:
    process = worker.process
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def _signal(deployment: Deployment, service: str, executable: str, number: int) -> None:
    """Signal a service's first process, unless it is down already."""
    found = working_in(deployment.home / service, executable)
    pids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.ppid() not in pids:
                os.kill(process.pid, number)
