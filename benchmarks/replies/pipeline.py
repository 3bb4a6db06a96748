"""Measure the cost of a message in the pipeline, without the language model.

    python -m benchmarks.replies.pipeline [--stored 100,10000] [--messages 200]

For each number of stored messages of one user: p50 and p95 of every step of `handle_message` and
messages per second of all steps together, in one process, as `konstruct_app` with policies on. The
steps are the pipeline's own functions; only the language model's answer is a fixed text.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

T = TypeVar("T")

SUBJECTS = ("my sister", "the landlord", "our neighbour", "the new colleague", "my old teacher")
VERBS = ("bought", "sold", "repaired", "painted", "forgot", "found", "borrowed", "praised")
OBJECTS = ("a bicycle", "the red lamp", "two tickets", "a cello", "the garden shed", "a cook book")
PLACES = ("in Lisbon", "at the market", "near the station", "on the island", "in the library")
TIMES = ("last Monday", "in March", "yesterday", "before the storm", "on her birthday")


def sentence(random_: random.Random) -> str:
    """Return one of 6,000 statements, numbered so that no two are equal."""
    parts = (random_.choice(words) for words in (SUBJECTS, VERBS, OBJECTS, PLACES, TIMES))
    return f"{' '.join(parts).capitalize()}, item {random_.randrange(10**6)}."


class Stopwatch:
    """Times named steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def time(self, step: str, function: Callable[[], T]) -> T:
        """Call the function and record its duration."""
        started = time.perf_counter()
        result = function()
        self.seconds.setdefault(step, []).append(time.perf_counter() - started)
        return result

    def print(self) -> None:
        """Print a line for each step, and messages a second of all steps."""
        print(f"  {'step':<18}{'p50 ms':>10}{'p95 ms':>10}")
        for step, seconds in self.seconds.items():
            milliseconds = sorted(1000 * value for value in seconds)
            p95 = milliseconds[int(0.95 * (len(milliseconds) - 1))]
            print(f"  {step:<18}{statistics.median(milliseconds):>10.2f}{p95:>10.2f}")
        rounds = len(next(iter(self.seconds.values())))
        # Indented steps are parts of others.
        total = sum(sum(s) for step, s in self.seconds.items() if not step.startswith(" "))
        print(f"  {rounds / total:.0f} messages per second\n")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", default="100,10000", help="stored messages, comma-separated")
    parser.add_argument("--messages", type=int, default=200, help="messages that are timed")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        for stored in (int(number) for number in arguments.stored.split(",")):
            measure(tenant_id, stored, arguments.messages)


def measure(tenant_id: UUID, stored: int, messages: int) -> None:
    """Store messages of a new user, then time the steps of further ones."""
    from konstruct.orchestrator import agents
    from konstruct.orchestrator.messages import konstruct_message
    from konstruct.orchestrator.pipeline import accept, respond
    from konstruct.orchestrator.replies import REPLIES
    from memory import indexing
    from memory.embedding import embedder
    from memory.models import PendingEmbedding
    from tenants.context import tenant_scope

    random_ = random.Random(stored)
    user_id = f"user-{stored}"
    with tenant_scope(tenant_id):
        agent = agents.create_agent(tenant_id=tenant_id, name=f"Benchmark {stored}")
        store(tenant_id, agent.id, user_id, stored, random_)
        while indexing.drain(tenant_id).more:
            pass
        assert not PendingEmbedding.objects.exists()
        print(f"{stored} stored messages of the user")
        watch = Stopwatch()
        for number in range(messages + 5):
            text = sentence(random_)
            if number == 5:
                watch = Stopwatch()  # the first messages warm caches, connections and the model
            incoming = accept.Incoming(
                agent_id=agent.id, user_id=user_id, thread_id="now", channel="rest", content=text
            )
            row, _ = watch.time("accept", partial(accept.accept, incoming, tenant_id=tenant_id))
            message = konstruct_message(row)
            seen = watch.time("snapshot", partial(accept.read_snapshot, message.id))
            agent_of_it, lease = seen.thread_agent, REPLIES.lease(message.id)
            assert lease is not None
            gathered = watch.time(
                "gather context", partial(respond.gather_context, message, agent_of_it)
            )
            vector = watch.time("  query embedding", partial(embedder.embed, [text]))
            assert len(vector) == 1
            watch.seconds.setdefault("  recall", []).append(gathered.recalled.milliseconds / 1000)
            prompt = watch.time(
                "build prompt", partial(respond.build_prompt, agent_of_it, gathered)
            )
            assert prompt.messages[-1]["content"].endswith(text)
            reply = watch.time(
                "record reply",
                partial(
                    respond.record_reply,
                    message,
                    respond.Draft(agent_of_it, "Noted.", prompt),
                ),
            )
            watch.time("append", partial(respond.append_to_window, message, reply))
            watch.time("finish", partial(respond.finish, seen, reply, lease))
            if number % 20 == 0:
                indexing.drain(tenant_id)  # the worker that embeds, outside of the reply
        watch.print()


def store(
    tenant_id: UUID, agent_id: UUID, user_id: str, count: int, random_: random.Random
) -> None:
    """Write a transcript of 40 turns a thread. The embeddings follow from memory.indexing."""
    from memory.conversations.transcript import record_message

    for number in range(count):
        record_message(
            tenant_id=tenant_id,
            agent_id=agent_id,
            user_id=user_id,
            thread_id=f"thread-{number // 40}",
            channel="benchmark",
            role="user" if number % 2 == 0 else "assistant",
            content=sentence(random_),
        )


if __name__ == "__main__":
    main()
