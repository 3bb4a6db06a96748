"""Every route with a key that is bound to one user and names things of other users.

In test_contract.py such a key requests data of another user. Here it sends its own user id in
every field for one, together with ids of threads, messages and rows of other users.
"""

import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django_redis import get_redis_connection

from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities import channel_identities
from konstruct.privacy import jobs
from memory.context import SessionStore
from memory.conversations.short_term import get_recent_messages
from tenants.audit.models import ErasureRequest
from tenants.context import connection, tenant_scope
from tests import database
from tests.konstruct.api.auth.test_scopes import refusal
from tests.konstruct.api.case import graph
from tests.konstruct.api.routes import CASES, V1, routes
from tests.konstruct.api.seed_data import SeedData, create_seed_data, talk
from tests.konstruct.conftest import Program, json_bytes

ERASURES = f"{V1}erasures/"
OWN = "mallory"
SECRET = " The code word is heliotrope."
# Threads of others: of a conversation, of an escalation, of an import, of a graph.
THREADS: tuple[Callable[[SeedData], str], ...] = (
    lambda seed: "t1",
    lambda seed: "a",
    lambda seed: "old/thread?",
    graph,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def seed(program_a: Program) -> SeedData:
    made = create_seed_data(program_a, secret=SECRET)
    talk(program_a, graph(made), f"Hello{SECRET}")
    return made


@pytest.fixture
def mallory(seed: SeedData) -> Program:
    return seed.program.with_key(scopes=KeyScope.values, user_id=OWN)


def rows_of(seed: SeedData) -> dict[str, set[str]]:
    """Return all rows by table, without times of keys and sums of usage, and the cached windows."""
    tenant_id = seed.program.tenant.id
    get_recent_messages(tenant_id, seed.program.agent.id, "maria")
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename NOT IN ('api_apikey', 'django_session', 'orchestrator_dailyusage')"
        )
        found = {}
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT (t.*)::text FROM {table} AS t")
            found[table] = {row for (row,) in cursor.fetchall()}
    cache = get_redis_connection()
    windows = [key for key in cache.keys(f"{tenant_id}:*") if b":memory:short:" in key]
    found["windows"] = {str((key, cache.lrange(key, 0, -1))) for key in windows}
    return found


def as_own(address: str, body: Any, thread_id: str) -> tuple[str, Any]:
    """Return the request with the key's own user and another user's thread in every place."""
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query))
    if "user_id" in query:
        query |= {"user_id": OWN}
    if parts.path.endswith(("/messages/", "/transcript/", "/conversations/", "/escalations/")):
        query |= {"thread_id": thread_id} if body is None else {}
    if isinstance(body, dict):
        body = {**body, "user_id": OWN} if "user_id" in body else dict(body)
        if parts.path.endswith(("/messages/", "/escalations/", "/compile/")):
            body["thread_id"] = thread_id
        if parts.path.endswith("/erasures/"):
            body["threads"] = [thread_id]
        if parts.path.endswith("/import/"):
            body = {"messages": [{**line, "user_id": OWN} for line in body["messages"]]}
    return f"{parts.path}?{urlencode(query)}" if query else parts.path, body


def test_no_route_returns_or_changes_rows_of_others(seed: SeedData, mallory: Program) -> None:
    assert routes() == set(CASES)
    before = rows_of(seed)
    turns = itertools.cycle(THREADS)
    for (route, method), case in sorted(CASES.items()):
        for thread in (next(turns), next(turns)):
            body = case.body(seed) if case.body else None
            address, body = as_own(case.path(seed), body, thread(seed))
            options: dict[str, Any] = {}
            if body is not None:
                options = {"data": json_bytes(body), "content_type": "application/json"}
            answer = mallory.request(method, address, **options)
            context = (route, method, address, answer.status_code)
            assert answer.status_code < 500, context
            assert "heliotrope" not in answer.content.decode(), context
            assert '"maria"' not in answer.content.decode(), context
        after = rows_of(seed)
        changed = {table for table in before if before[table] - after[table]}
        assert (route, method, changed) == (route, method, set())
    with tenant_scope(seed.program.tenant.id):
        assert not ErasureRequest.objects.filter(user_id=OWN).exists()


def test_a_thread_that_is_claimed_by_speaking_in_it_is_not_erased(
    seed: SeedData, mallory: Program
) -> None:
    thread = graph(seed)
    sent = mallory.send("It is mine.", user_id=OWN, thread_id=thread)
    assert sent.status_code == 202
    for threads in ([thread], ["t1"], ["unheard of"], [thread, "t1"]):
        answer = mallory.post(ERASURES, {"user_id": OWN, "threads": threads})
        assert "Not of 'mallory' alone" in refusal(answer, 403)
    assert mallory.post(ERASURES, {"user_id": OWN}).status_code == 202
    with database.as_owner():
        assert jobs.ERASE.run_due() == 1
    store = SessionStore(seed.program.tenant.id)
    assert len(store.get_session_messages(thread)) == 1


def test_linked_user_needs_a_key_of_the_tenant(seed: SeedData, mallory: Program) -> None:
    with tenant_scope(seed.program.tenant.id):
        channel_identities.link(
            channel_identities.identity_of("slack", "T1", OWN), "maria", by="tests"
        )
    answer = mallory.post(ERASURES, {"user_id": OWN})
    assert "a key of the whole tenant" in refusal(answer, 403)
    assert "maria" not in answer.content.decode()
    erasure = seed.program.post(ERASURES, {"user_id": OWN}).json()
    assert set(erasure["user_ids"]) >= {OWN, "maria"}


def test_agent_key_cannot_erase_data_of_other_agents(seed: SeedData) -> None:
    bo = seed.program.with_key(scopes=list(KeyScope.values), agent_id=seed.other.pk)
    # Maria wrote "t1" to ada, and "t2" to bo.
    refusal(bo.post(ERASURES, {"user_id": "maria", "threads": ["t1"]}), 403)
    assert bo.post(ERASURES, {"user_id": "maria", "threads": ["t2"]}).status_code == 202


def test_a_key_of_the_tenant_erases_no_thread_of_others_either(seed: SeedData) -> None:
    answer = seed.program.post(ERASURES, {"user_id": "theo", "threads": ["t1"]})
    assert "Not of 'theo' alone: 't1'" in refusal(answer, 422)
    assert answer.json()["errors"][0]["field"] == "threads"
