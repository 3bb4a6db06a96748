"""Faults of a deployment: each function causes one fault, and returns."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import psutil
import psycopg
import redis

from konstruct.processes import processes_in
from memory.models.recall import scope_number
from tests.end_to_end.deployment import Deployment, Supervised
from tests.survival.llm import EchoServer

Fault = Callable[[Deployment, Random], None]
POISONED = 3
# The workers of replies are the first workers of a deployment.
REPLIES_WORKERS = 2
# Longer than leases are valid (checked by a test). The benchmark imports this without settings.
STOPPED_SECONDS = 15.0
# The file in a deployment's home from which libfaketime reads the clock offset.
CLOCK = "clock"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def kill_web(deployment: Deployment, random: Random) -> None:
    """Kill the web process, as when its machine fails."""
    deployment.web.kill()


def kill_worker(deployment: Deployment, random: Random) -> None:
    """Kill a worker of one of the queues."""
    random.choice(deployment.workers).kill()


def stop_worker(deployment: Deployment, random: Random) -> None:
    """Stop a worker for longer than its leases are valid, or for a moment; then continue it."""
    _stop(random.choice(deployment.workers), random.choice([1.0, STOPPED_SECONDS]))


def stop_replies_worker(deployment: Deployment, random: Random) -> None:
    """Stop a worker of replies for longer than its leases are valid; then continue it."""
    _stop(random.choice(deployment.workers[:REPLIES_WORKERS]), STOPPED_SECONDS)


def end_worker(deployment: Deployment, random: Random) -> None:
    """End a worker as a deployment of a new version does."""
    random.choice(deployment.workers).process.terminate()


def kill_beat(deployment: Deployment, random: Random) -> None:
    """Kill beat, which enqueues the sweeps."""
    deployment.beat.kill()


def kill_valkey(deployment: Deployment, random: Random) -> None:
    """Kill Valkey. It restarts with its stored data."""
    _signal(deployment, "valkey", "valkey-server", signal.SIGKILL)


def lose_valkey(deployment: Deployment, random: Random) -> None:
    """Kill Valkey. It restarts without its data."""
    with contextlib.suppress(redis.RedisError):
        deployment.lose_cache_and_broker()
    _signal(deployment, "valkey", "valkey-server", signal.SIGKILL)


def restart_valkey(deployment: Deployment, random: Random) -> None:
    """Restart Valkey in order, as an upgrade of the broker does. It keeps its data."""
    _signal(deployment, "valkey", "valkey-server", signal.SIGTERM)


def kill_postgres(deployment: Deployment, random: Random) -> None:
    """Kill the postmaster; its children follow."""
    _signal(deployment, "postgres", "postgres", signal.SIGKILL)


def crash_postgres(deployment: Deployment, random: Random) -> None:
    """Shut Postgres down immediately: it restarts with a recovery."""
    _signal(deployment, "postgres", "postgres", signal.SIGQUIT)


def restart_postgres(deployment: Deployment, random: Random) -> None:
    """Restart Postgres with a fast shutdown."""
    _signal(deployment, "postgres", "postgres", signal.SIGINT)


def cut_connections(deployment: Deployment, random: Random) -> None:
    """Terminate every connection of the application to Postgres."""
    url = deployment.database_url.replace("konstruct_app", "postgres")  # and its password's file
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'konstruct_app'"
        )


def step_clock(deployment: Deployment, random: Random) -> None:
    """Step the clock of Postgres, which leases and jobs use, by up to a minute either way.

    The offset lasts longer than leases are valid, and is removed afterwards.
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
    """Stall the language model for a moment; requests of this time wait."""
    assert isinstance(deployment.llm, EchoServer)
    with deployment.llm.stalled():
        time.sleep(random.uniform(0.5, 2))


def break_llm(deployment: Deployment, random: Random) -> None:
    """Make the language model busy for some requests."""
    assert isinstance(deployment.llm, EchoServer)
    deployment.llm.break_down(random.randint(1, 4))


def poison_outbox(deployment: Deployment, random: Random) -> None:
    """Enqueue embeddings of messages that can never be stored, due before all others."""
    tenant = random.choice(deployment.tenants)
    with contextlib.suppress(psycopg.OperationalError):
        tenant.rows(
            "WITH poisoned AS (INSERT INTO memory_message"
            " (agent_id, user_id, thread_id, channel, role, content)"
            " SELECT %s, 'poisoner', 't', 'import', 'user', 'poison' FROM generate_series(1, %s)"
            " RETURNING id, tenant_id), pending AS (INSERT INTO memory_pendingembedding"
            " (message_id) SELECT id FROM poisoned),"
            " taken AS (INSERT INTO memory_scope (id, agent_id, user_id)"
            " VALUES (%s, %s, 'taken') ON CONFLICT DO NOTHING)"
            " INSERT INTO tenants_job (tenant_id, kind, key, due_at, sweep_at)"
            " SELECT tenant_id, 'embedding', id, '2000-01-01', '2000-01-01' FROM poisoned"
            " RETURNING 1",
            *(tenant.agent_id, POISONED),
            # The number of the poisoner's scope belongs to another one.
            *(scope_number(UUID(str(tenant.agent_id)), "poisoner"), tenant.agent_id),
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
    """Signal the first process of a service, unless it is down."""
    found = processes_in(deployment.home / service, executable)
    pids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.ppid() not in pids:
                os.kill(process.pid, number)
