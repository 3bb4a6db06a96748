"""Move a large tenant to another server. Check for losses, and measure how long requests wait.

    python -m benchmarks.fleet.moving [--messages 100000] [--others 8] [--waiting SECONDS]

A second Postgres runs beside the embedded one. A tenant gets `--messages` messages with vectors, as
benchmarks/recall/scale.py creates them. It and other tenants on both servers use the API. Each has
a thread that sends a message, reads conversations and repeats, and that obeys Retry-After.
Meanwhile `manage.py move_tenant` moves the tenant.

Afterwards every accepted message must exist once, in its own tenant. Every row of the old copy must
be equal on the other server, and the same questions must give the same results.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock
from uuid import UUID, uuid4

import numpy as np

from benchmarks.recall.scale import Language, Scope, grow, read_by
from benchmarks.tools.throwaway import PROJECT, manage, set_up

QUESTIONS = 50
USE = "from konstruct.local import embedded; embedded.ensure_postgres(); print('up'); input()"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000, help="of the tenant that moves")
    parser.add_argument("--others", type=int, default=8, help="tenants that talk beside it")
    parser.add_argument(
        "--waiting", type=float, default=10, help="seconds of talk before and after"
    )
    arguments = parser.parse_args()
    with second_server():
        set_up()
        from konstruct.local import embedded

        embedded.ensure()
        manage("migrate")
        give_memory_for_indexes()
        slugs = [f"moving-{uuid4().hex[:8]}-{number}" for number in range(arguments.others + 1)]
        try:
            for number, slug in enumerate(slugs):
                manage("create_tenant", slug, "--server", "eu1" if number % 2 else "default")
            measure(slugs, arguments.messages, arguments.waiting)
        finally:
            for slug in slugs:
                manage("delete_tenant", slug, "--yes")


@contextlib.contextmanager
def second_server() -> Iterator[None]:
    """Start another embedded Postgres, called eu1 in the environment of all processes."""
    from konstruct.local import embedded

    beside = Path(f"{embedded.home()}-eu1")
    environment = {**os.environ, "KONSTRUCT_HOME": str(beside)}
    server = subprocess.Popen(
        [sys.executable, "-u", "-c", USE],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "up\n"
    with mock.patch.dict(os.environ, KONSTRUCT_HOME=str(beside)):
        urls = {role: embedded.database_url(role) for role in ("app", "owner", "superuser")}
    os.environ["TENANT_DATABASES"] = f"eu1={urls['app']}"
    os.environ["TENANT_DATABASES_OWNER"] = f"eu1={urls['owner']}"
    os.environ["BENCHMARK_SUPERUSER"] = urls["superuser"]
    try:
        yield
    finally:
        server.communicate("\n")


def give_memory_for_indexes() -> None:
    """Raise the memory for index builds, as for large tenants: otherwise a build is very slow."""
    import psycopg

    from konstruct.local import embedded

    for url in (embedded.database_url("superuser"), os.environ["BENCHMARK_SUPERUSER"]):
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute("ALTER ROLE konstruct_owner SET maintenance_work_mem = '1GB'")


@contextlib.contextmanager
def without_slow_indexes(schema: str) -> Iterator[None]:
    """Build the vector indexes after the block. Inserting without them is much faster."""
    import psycopg

    from konstruct.local import embedded
    from tenants.moving.rows import slow_indexes_of

    with psycopg.connect(embedded.database_url("owner"), autocommit=True) as owner:
        indexes = slow_indexes_of(owner, schema)
        for name, _ in indexes:
            owner.execute(f"DROP INDEX {name}".encode())
        yield
        for _, made_by in indexes:
            owner.execute(made_by.encode())


@dataclass
class Talker:
    """A client of a tenant that sends messages and reads, one request after the other."""

    slug: str
    tenant_id: UUID
    key: str
    accepted: list[str] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)  # start, seconds
    refused: int = 0
    longest: float = 0.0  # seconds until a message was accepted
    wrong: Counter[int] = field(default_factory=Counter)

    def talk(self, until: threading.Event) -> None:
        """Send requests until the event is set. A started request is finished."""
        from django.db import close_old_connections, connections
        from django.test import Client

        client = Client(
            headers={"host": "localhost", "authorization": f"Bearer {self.key}"},
            raise_request_exception=False,
        )
        number = 0
        while not until.is_set():
            number += 1
            content = f"{self.slug} says {number}"
            body = {"agent": "Ada", "user_id": "talker", "content": content}
            sent_at = time.monotonic()
            while True:
                close_old_connections()
                began = time.monotonic()
                answer = client.post(
                    "/api/v1/messages/",
                    body,
                    content_type="application/json",
                    headers={"idempotency-key": f"{self.slug}-{number}"},
                )
                self.times.append((began, time.monotonic() - began))
                if answer.status_code in (200, 201, 202):
                    self.accepted.append(content)
                    self.longest = max(self.longest, time.monotonic() - sent_at)
                    break
                if answer.status_code != 503 or not answer.headers.get("Retry-After"):
                    self.wrong[answer.status_code] += 1
                self.refused += 1
                time.sleep(0.1)
            close_old_connections()
            answer = client.get("/api/v1/conversations/")
            if answer.status_code not in (200, 503):
                self.wrong[answer.status_code] += 1
        connections.close_all()


def measure(slugs: list[str], messages: int, waiting: float) -> None:
    """Fill the first tenant, run all clients while it moves, and compare."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from memory.embedding.embedder import model_version
    from tenants.context import tenant_scope
    from tenants.models import Tenant

    talkers = []
    for slug in slugs:
        tenant = Tenant.objects.get(slug=slug)
        with tenant_scope(tenant.id):
            create_agent(tenant_id=tenant.id, name="Ada")
            _, key = issue_key(tenant_id=tenant.id, name="benchmark")
        talkers.append(Talker(slug, tenant.id, str(key)))
    mover = Tenant.objects.get(slug=slugs[0])
    language = Language(model_version())
    scope = Scope(uuid4(), "the-one")
    began = time.monotonic()
    with without_slow_indexes(mover.schema_name):
        contents = grow(mover.id, scope, messages, language)
    print(f"{messages:,} messages after {time.monotonic() - began:.0f} s", flush=True)
    questions = _questions(contents, language)
    before = _answers(mover.id, scope, questions)
    enough = threading.Event()
    threads = [threading.Thread(target=talker.talk, args=(enough,)) for talker in talkers]
    for thread in threads:
        thread.start()
    time.sleep(waiting)
    began = time.monotonic()
    moved = subprocess.run(
        [sys.executable, PROJECT / "manage.py", "move_tenant", mover.slug, "--to", "eu1"],
        capture_output=True,
        text=True,
        check=False,
    )
    ended = time.monotonic()
    time.sleep(waiting)
    enough.set()
    for thread in threads:
        thread.join()
    print(moved.stdout + moved.stderr)
    mover.refresh_from_db()
    assert mover.server == "eu1", mover.server
    for name, group in (("it", talkers[:1]), ("the others", talkers[1:])):
        _print_talk(name, group, began, ended)
    for talker in talkers:
        _compare_with_what_was_accepted(talker)
    after = _answers(mover.id, scope, questions)
    for how in ("read as a whole", "by the index over vectors, which was built anew"):
        pairs = list(zip(before.pop(0), after.pop(0), strict=True))
        shared = [len({*a} & {*b}) / max(len(a), 1) for a, b in pairs]
        print(
            f"recall, {how}: {sum(a == b for a, b in pairs)} of {len(pairs)} questions find the"
            f" same in the same order; {sum(shared) / len(shared):.2f} of what is found is the same"
        )
    _compare_with_the_copy_left(mover)


def _questions(contents: dict[UUID, str], language: Language) -> list[tuple[str, np.ndarray]]:
    picked = np.random.default_rng(1).choice(list(contents.values()), QUESTIONS)
    questions = [language.question(content) for content in picked]
    return [(question, language.encode([question])[0]) for question in questions]


def _answers(
    tenant_id: UUID, scope: Scope, questions: list[tuple[str, np.ndarray]]
) -> list[list[list[UUID]]]:
    """Return the results of each question: from the whole scope, and as recall reads it."""
    from memory.recall import recall
    from memory.recall.policy import RecallPolicy
    from memory.recall.queries import Strategy

    policy = RecallPolicy(gate=False)
    of = (tenant_id, scope.agent_id, scope.user_id)

    def ask() -> list[list[UUID]]:
        return [
            [hit.message_id for hit in recall(*of, query, policy=policy, query_embedding=vec).hits]
            for query, vec in questions
        ]

    with read_by(Strategy.WHOLE):
        exact = ask()
    return [exact, ask()]


def _print_talk(name: str, talkers: list[Talker], began: float, ended: float) -> None:
    inside = [s for talker in talkers for at, s in talker.times if began <= at <= ended]
    outside = [s for talker in talkers for at, s in talker.times if not began <= at <= ended]
    p50, p95 = (
        [1000 * float(np.percentile(times, q)) for times in (outside, inside)] for q in (50, 95)
    )
    print(
        f"{name}: {sum(len(talker.accepted) for talker in talkers):,} messages accepted,"
        f" {sum(talker.refused for talker in talkers)} times told to come again, the longest wait"
        f" {max(talker.longest for talker in talkers):.1f} s, answers that are none:"
        f" {dict(sum((talker.wrong for talker in talkers), Counter()))};"
        f" a message p50 {p50[0]:.0f} ms before and after, {p50[1]:.0f} during the move,"
        f" p95 {p95[0]:.0f} and {p95[1]:.0f}"
    )


def _compare_with_what_was_accepted(talker: Talker) -> None:
    from memory.models import Message
    from tenants.context import tenant_scope

    with tenant_scope(talker.tenant_id):
        stored = Counter(
            Message.objects.filter(user_id="talker", role="user").values_list("content", flat=True)
        )
    assert stored == Counter(talker.accepted), (
        f"{talker.slug}: lost {Counter(talker.accepted) - stored},"
        f" too many {stored - Counter(talker.accepted)}"
    )


def _compare_with_the_copy_left(mover: object) -> None:
    """Check that every message and vector of the old copy exists and is equal, as superusers."""
    import psycopg

    from konstruct.local import embedded
    from tenants.models import Tenant
    from tenants.moving.rows import row_digests, tables_of
    from tenants.schemas.old_copies import old_copies

    assert isinstance(mover, Tenant)
    (left,) = old_copies(mover.id)
    with (
        psycopg.connect(embedded.database_url("superuser")) as here,
        psycopg.connect(os.environ["BENCHMARK_SUPERUSER"]) as there,
    ):
        pairs = zip(
            tables_of(here, left.schema_name), tables_of(there, mover.schema_name), strict=True
        )
        equal = missing = 0
        for old, new in pairs:
            if new.name.split(".")[1] in ('"memory_message"', '"memory_conversationembedding"'):
                lines = row_digests(here, old)
                missing += len(lines.items() - row_digests(there, new).items())
                equal += len(lines)
    assert not missing, f"{missing} of {equal} rows"
    print(f"{equal:,} messages and vectors of the copy that is left stand there, equal")


if __name__ == "__main__":
    main()
