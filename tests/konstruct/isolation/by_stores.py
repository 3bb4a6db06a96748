"""Attacks on cache, broker and checkpointer, and by the functions of memory."""

from collections.abc import Callable, Iterator
from typing import Any

from django_redis import get_redis_connection

from konstruct.orchestrator.tasks import handle_message
from memory.context import SessionStore
from memory.conversations.short_term import get_recent_messages
from memory.conversations.window_store import get_thread_turns
from memory.facts import LongTermMemory
from memory.long_term import retrieve_relevant
from memory.models import PendingEmbedding
from memory.tasks import embed_and_store
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.redis_keys import all_keys_pattern
from tests.konstruct.isolation.attempts import Attempt, Layer
from tests.konstruct.isolation.fixtures import THREAD, USER, VECTOR, TenantFixture


def attack(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Attack with leaked ids of the victim."""
    own_id, victim_id = attacker.tenant.id, victim.tenant.id
    facts = LongTermMemory()
    # The victim's ids in our own tenant, as a wrong parameter could do.
    yield _reads(
        Layer.SCHEMA, "recall", "search the victim's user and agent", victim,
        lambda: retrieve_relevant(own_id, victim.agent_id, USER, VECTOR, 100, -1.0),
    )  # fmt: skip
    yield _reads(
        Layer.SCHEMA, "facts", "search", victim, lambda: facts.search(own_id, VECTOR, limit=100)
    )
    yield _reads(Layer.SCHEMA, "facts", "list", victim, lambda: facts.list_by_tenant(own_id, 1000))
    deleted = facts.delete(victim.fact_id, own_id)
    yield Attempt(Layer.SCHEMA, "facts", "delete the victim's", deleted, f"deleted: {deleted}")
    saver = SessionStore(own_id).checkpointer
    yield _reads(Layer.SCHEMA, "checkpointer", "list all", victim, lambda: [*saver.list(None)])
    before = len(SessionStore(victim_id).get_session_messages(THREAD))
    saver.delete_thread(THREAD)
    lost = before - len(SessionStore(victim_id).get_session_messages(THREAD))
    yield Attempt(
        Layer.SCHEMA, "checkpointer", "clear a thread of the same name", lost > 0, f"{lost} lost"
    )
    yield _reads(
        Layer.KEYS, "cache", "read the window of a thread of the same name", victim,
        lambda: get_thread_turns(own_id, THREAD, "rest"),
    )  # fmt: skip
    yield _reads(Layer.KEYS, "cache", "read all keys of ours", victim, lambda: _values(attacker))
    with tenant_scope(own_id):
        yield from _out_of_a_pin(victim)
    yield from _by_tasks(attacker, victim)


def _out_of_a_pin(victim: TenantFixture) -> Iterator[Attempt]:
    """Call every public function of memory for the victim in code of another tenant."""
    victim_id = victim.tenant.id
    calls: dict[str, Callable[[], Any]] = {
        "window": lambda: get_recent_messages(victim_id, victim.agent_id, USER),
        "recall": lambda: retrieve_relevant(victim_id, victim.agent_id, USER, VECTOR),
        "facts": lambda: LongTermMemory().list_by_tenant(victim_id),
        "checkpointer": lambda: SessionStore(victim_id).get_session_messages(THREAD),
        "task": lambda: embed_and_store(str(victim_id)),
    }
    for via, call in calls.items():
        yield _reads(Layer.PIN, via, "ask for the victim's", victim, call)


def _by_tasks(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Run tasks with our tenant and the victim's message, or without a tenant."""
    with tenant_scope(victim.tenant.id):
        before = PendingEmbedding.objects.count()
    for what, call in {
        "answer the victim's message": lambda: handle_message(
            str(attacker.tenant.id), str(victim.message_id)
        ),
        "embed the victim's message": lambda: embed_and_store(
            str(attacker.tenant.id), [str(victim.message_id)]
        ),
        "a task of nobody's": lambda: embed_and_store(),
    }.items():
        try:
            outcome = f"returned {call()}"
        except Exception as error:  # whatever error stops it
            outcome = f"{type(error).__name__}: {error}"
        with tenant_scope(victim.tenant.id):
            after = PendingEmbedding.objects.count()
        # The victim's own worker may remove tasks meanwhile, but none may be added.
        yield Attempt(Layer.KEYS, "broker", what, after > before, outcome)


def _values(owner: TenantFixture) -> list[bytes]:
    client = get_redis_connection("default")
    found: list[bytes] = []
    for key in client.scan_iter(match=all_keys_pattern(owner.tenant.id), count=1000):
        kind = client.type(key)
        found += client.lrange(key, 0, -1) if kind == b"list" else []
        found += [client.get(key) or b""] if kind == b"string" else []
    return found


def _reads(
    layer: Layer, via: str, what: str, victim: TenantFixture, call: Callable[[], Any]
) -> Attempt:
    """Succeeds if the result contains the victim's secret, or any of its rows."""
    try:
        found = call()
    except KonstructError as error:
        return Attempt(layer, via, what, False, f"{type(error).__name__}: {error}")
    text = "".join(str(getattr(hit, "content", hit)) for hit in found or ())
    through = victim.secret in text or layer is Layer.PIN
    return Attempt(layer, via, what, through, f"{len(found or ())} found")
