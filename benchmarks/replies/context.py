"""Measure the cost of the context of a prompt, and of LangGraph's saver and store.

    python -m benchmarks.replies.context [--stored 10000] [--facts 100] [--prompts 200]

Konstruct: `ContextManager.compile_working_context` for a user with 20 recent turns, stored messages
and facts: window, recall, facts, and the cut to the budget; as `konstruct_app` with policies on.
LangGraph: its PostgresSaver gets a thread with the same turns, and its PostgresStore searches the
same messages by the vectors of the same model (HNSW, its default), without policies and without
compiling. Both need the vector of each question once: it is timed once, passed to LangGraph's
search, and added to both sums. Both get each question in turn.
"""

import argparse
import contextlib
import random
import secrets
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from benchmarks.replies.pipeline import Stopwatch, sentence, store
from benchmarks.tools.throwaway import set_up, throwaway_tenant

RECENT = 20
WARM_UP = 10
USER = "user"
THREAD = "now"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", type=int, default=10_000, help="stored messages of the user")
    parser.add_argument("--facts", type=int, default=100, help="facts of the user")
    parser.add_argument("--prompts", type=int, default=200, help="prompts that are timed")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id, langgraphs_own() as (saver, peer):
        agent_id = uuid4()
        fill(tenant_id, agent_id, arguments.stored, arguments.facts)
        fill_langgraph(tenant_id, agent_id, saver, peer)
        compare(tenant_id, agent_id, saver, peer, arguments.prompts)


# Vectors of questions, read by LangGraph's store.
known: dict[str, list[float]] = {}


def embed_unless_known(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts for LangGraph's store."""
    from memory.embedding.embedder import embed

    return [known[text] for text in texts] if known.keys() >= set(texts) else embed(texts)


def fill(tenant_id: UUID, agent_id: UUID, stored: int, facts: int) -> None:
    """Create a transcript with its embeddings, a full window, and facts."""
    from memory import indexing
    from memory.context import LongTermMemory, MemoryEntry
    from memory.conversations import short_term

    random_ = random.Random(stored)
    store(tenant_id, agent_id, USER, stored, random_)
    while indexing.drain(tenant_id).more:
        pass
    for number in range(RECENT):
        role = ("user", "assistant")[number % 2]
        short_term.append_message(tenant_id, agent_id, USER, role, sentence(random_))
    memory = LongTermMemory()
    for _ in range(facts):
        memory.store(
            MemoryEntry(
                tenant_id=tenant_id, agent_id=agent_id, user_id=USER, content=sentence(random_)
            )
        )


def fill_langgraph(tenant_id: UUID, agent_id: UUID, saver: Any, peer: Any) -> None:
    """Store the same turns as the newest checkpoint of a thread, and the messages as items."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.store.base import PutOp

    from memory.conversations import short_term
    from memory.models import Message
    from tenants.context import tenant_scope

    window = short_term.get_recent_messages(tenant_id, agent_id, USER)
    assert len(window) == RECENT
    turns = [
        (HumanMessage if turn["role"] == "user" else AIMessage)(turn["content"]) for turn in window
    ]
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": turns}
    checkpoint["channel_versions"] = {"messages": 1}
    config = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}
    saver.put(config, checkpoint, {"source": "loop", "step": 1}, {"messages": 1})
    with tenant_scope(tenant_id):
        messages = [*Message.objects.order_by("number").values_list("id", "content")]
    for start in range(0, len(messages), 500):
        peer.batch(
            [
                PutOp((str(agent_id), USER), str(message_id), {"text": content})
                for message_id, content in messages[start : start + 500]
            ]
        )


def compare(tenant_id: UUID, agent_id: UUID, saver: Any, peer: Any, prompts: int) -> None:
    """Ask both the same questions, and print the times."""
    from memory.context import ContextManager
    from memory.context.working import WorkingContextCompiler
    from memory.conversations import short_term
    from memory.embedding import embedder

    manager, compiler = ContextManager(), WorkingContextCompiler()
    random_ = random.Random(1)
    questions = [f"What was it that {sentence(random_)[:-1].lower()}?" for _ in range(prompts)]
    scope = (tenant_id, agent_id, USER)
    named: Any = {"agent_id": agent_id, "user_id": USER}
    thread = {"configurable": {"thread_id": THREAD}}
    watch = Stopwatch()
    for number, question in enumerate([*questions[:WARM_UP], *questions]):
        if number == WARM_UP:
            watch = Stopwatch()
        compiled = watch.time(
            "compile_working_context",
            partial(
                manager.compile_working_context,
                *(tenant_id, THREAD, question, "You are kind."),
                **named,
            ),
        )
        assert len(compiled["messages"]) == RECENT
        window = watch.time("  window", partial(short_term.get_recent_messages, *scope))
        (vector,) = watch.time("  query embedding", partial(embedder.embed, [question]))
        known[question] = vector
        found = manager.gather(tenant_id, THREAD, question, **named)
        assert found.recalled is not None
        watch.seconds.setdefault("  recall", []).append(found.recalled.milliseconds / 1000)
        facts = partial(manager.memory.search, tenant_id, vector, 10, **named)
        watch.time("  facts", facts)
        cut = partial(compiler.compile, "You are kind.", window, found.lines, question)
        watch.time("  compile", cut)

        checkpoint = watch.time("  PostgresSaver.get_tuple", partial(saver.get_tuple, thread))
        assert len(checkpoint.checkpoint["channel_values"]["messages"]) == RECENT
        search = partial(peer.search, (str(agent_id), USER), query=question, limit=10)
        assert len(watch.time("  PostgresStore.search", search)) == 10
    peers = {name: watch.seconds.pop(name) for name in [*watch.seconds] if "Postgres" in name}
    peers["  query embedding"] = watch.seconds["  query embedding"]
    whole = [sum(parts) for parts in zip(*peers.values(), strict=True)]
    print("Konstruct (each part timed by itself)")
    print_table(watch.seconds)
    print("LangGraph")
    print_table({"get_tuple + search": whole, **peers})


def print_table(seconds: dict[str, list[float]]) -> None:
    """Print p50 and p95 of each row."""
    print(f"  {'':<26}{'p50 ms':>10}{'p95 ms':>10}")
    for name, values in seconds.items():
        milliseconds = sorted(1000 * value for value in values)
        middle = milliseconds[len(milliseconds) // 2]
        p95 = milliseconds[int(0.95 * (len(milliseconds) - 1))]
        print(f"  {name:<26}{middle:>10.2f}{p95:>10.2f}")


@contextlib.contextmanager
def langgraphs_own() -> Iterator[tuple[Any, Any]]:
    """Return LangGraph's saver and store in their own schema, which is dropped afterwards."""
    import psycopg
    from django.conf import settings
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore
    from psycopg.rows import dict_row

    from konstruct.local import services

    url = (
        services.database_url("owner")
        if settings.EMBEDDED_DATABASE
        else settings.DATABASE_OWNER_URL
    )
    schema = f"langgraph_{secrets.token_hex(4)}"
    connect = partial(psycopg.connect, url, autocommit=True, row_factory=dict_row)
    path = f"-c search_path={schema},extensions"
    with connect() as owner:
        owner.execute(f"CREATE SCHEMA {schema}")
    try:
        with (
            connect(options=path, prepare_threshold=0) as first,
            connect(options=path, prepare_threshold=0) as second,
        ):
            saver = PostgresSaver(first)
            saver.setup()
            index: Any = {"dims": 384, "embed": embed_unless_known, "fields": ["text"]}
            peer = PostgresStore(second, index=index)
            peer.setup()
            yield saver, peer
    finally:
        with connect() as owner:
            owner.execute(f"DROP SCHEMA {schema} CASCADE")


if __name__ == "__main__":
    main()
