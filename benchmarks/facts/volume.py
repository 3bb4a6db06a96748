"""Measure calls, tokens and memory of the extraction from many generated turns.

    python -m benchmarks.facts.volume [--turns 10000] [--threads 50]

Users talk with an agent in --threads conversations, which are idle when their facts are extracted.
The agent has default settings. The model runs in its own process and answers with a fact for every
tenth message. One process extracts; its peak memory is read after each tenth.
"""

import argparse
import random
import resource
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from benchmarks.facts.harness import extract_all, make_agent, record_session
from benchmarks.facts.injection_cases import fact
from benchmarks.facts.model_server import Session, serving
from benchmarks.replies.pipeline import sentence
from benchmarks.tools.throwaway import set_up, throwaway_tenant

START = datetime(2024, 1, 10, 9, tzinfo=UTC)
FACT_EVERY = 10
PARTS = 10


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=50, help="conversations")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        from tenants.context import tenant_scope

        with tenant_scope(tenant_id):
            run(tenant_id, arguments.turns, arguments.threads)


def generate(turns: int, threads: int) -> list[Session]:
    """Return the conversations, with a fact in every n-th turn."""
    random_ = random.Random(turns)
    sessions = []
    for thread in range(threads):
        texts, facts = {}, []
        for turn in range(turns // threads):
            words = sentence(random_)
            texts[f"t{turn}"] = f"{words} {thread}-{turn}"
            if turn % FACT_EVERY == 0:
                quote = f"{words.split()[-1]} {thread}-{turn}"
                facts.append(
                    fact(
                        f"Anna has seen the {quote}.",
                        quote,
                        slot="seen",
                    )
                )
        sessions.append(Session(f"thread-{thread:03}", texts, facts))
    return sessions


def run(tenant_id: UUID, turns: int, threads: int) -> dict[str, Any]:
    """Record and extract in parts. Print and return the figures."""
    from django.db.models import Sum

    from konstruct.orchestrator.models import ExtractionRun, ModelCall
    from memory.embedding.embedder import embed
    from memory.models import MemoryEntry

    sessions = generate(turns, threads)
    agent_id = make_agent(tenant_id, "volume")
    embed(["The model is loaded once."])
    peaks, seconds = [_peak()], 0.0
    with serving(sessions) as served:
        for part in range(PARTS):
            for number, session in enumerate(sessions[part::PARTS]):
                record_session(
                    tenant_id,
                    agent_id,
                    f"user-{part}-{number % 3}",
                    session,
                    speakers=dict.fromkeys(session.texts, "Anna"),
                    began_at=START + timedelta(days=part),
                )
            begun = time.perf_counter()
            extract_all()
            seconds += time.perf_counter() - begun
            peaks.append(_peak())
        calls = served.requests.value
    sums = ModelCall.objects.aggregate(sent=Sum("prompt_tokens"), received=Sum("completion_tokens"))
    figures = {
        "turns": sum(len(session.texts) for session in sessions),
        "calls": calls,
        "calls per message": calls / turns,
        "facts": MemoryEntry.objects.entries().count(),
        "facts of the model": sum(len(session.facts) for session in sessions),
        "failed runs": ExtractionRun.objects.filter(state="failed").count(),
        "prompt tokens per message": sums["sent"] / turns,
        "completion tokens per message": sums["received"] / turns,
        "messages a second": turns / seconds,
        "peak MB": peaks,
    }
    for name, value in figures.items():
        print(f"{name:<32} {value}")
    return figures


def _peak() -> int:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
