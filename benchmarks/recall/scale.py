"""Measure the cost and quality of recall as the memory of one user grows among others.

    python -m benchmarks.recall.scale [--sizes 600,5000,20000,100000] [--others 200]
        [--rounds 1] [--json OUT]

The words of messages are drawn by Zipf's law with a topic for each thread. A vector is the sum of
the directions of its words with noise, so that words and vectors agree as in natural text and
embedding takes no time. The rest is the product: `index_messages`, the HNSW index, `konstruct_app`,
policies on. A question is a few words of one message, which must be found. The exact answer is that
of the same recall without a limit on the weighed messages. Each question is timed when it is asked
for the first time, after others. A large scope is then also read by both strategies
(memory/recall/queries.py) in turns.
"""

import argparse
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock
from uuid import UUID, uuid4

import numpy as np

from benchmarks.tools.throwaway import set_up, throwaway_tenant

if TYPE_CHECKING:
    from memory.recall.queries import Strategy

VOCABULARY = 20_000
TOPICS, TOPIC_WORDS = 500, 60
DIMENSIONS = 384
OTHERS_MESSAGES = 250
BATCH = 500
QUESTIONS = 100


class Language:
    """Words, threads of messages, and their vectors; the same ones in every run."""

    max_tokens = 256

    def __init__(self, version: str) -> None:
        self.version = version
        self._random = np.random.default_rng(7)
        frequency = 1 / np.arange(1, VOCABULARY + 1)
        self._frequency = frequency / frequency.sum()
        self._topics = self._random.choice(VOCABULARY, (TOPICS, TOPIC_WORDS))
        directions = self._random.standard_normal((VOCABULARY, DIMENSIONS)).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rarity = np.minimum(-np.log(self._frequency), 9).astype(np.float32)
        self._directions = directions * (rarity**1.3)[:, None]

    def thread(self) -> list[str]:
        """Return ten to thirty messages on one topic, of one to three sentences."""
        topic = int(self._random.integers(TOPICS))
        return [
            " ".join(self._sentence(topic) for _ in range(self._random.integers(1, 4)))
            for _ in range(self._random.integers(10, 31))
        ]

    def _sentence(self, topic: int) -> str:
        words = np.concatenate(
            [
                self._random.choice(VOCABULARY, self._random.integers(5, 9), p=self._frequency),
                self._random.choice(self._topics[topic], 3),
            ]
        )
        return " ".join(f"w{word}" for word in words) + "."

    def question(self, content: str) -> str:
        """Return four words of a sentence of the message, as an imprecise question."""
        sentence = self._random.choice(content.rstrip(".").split(". "))
        return " ".join(self._random.choice(sentence.split(), 4, replace=False))

    def count_tokens(self, text: str) -> int:
        """Count one token for each word."""
        return len(text.split())

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return unit vectors. The same text has the same vector."""
        return np.stack([self._vector(text) for text in texts])

    def encode_batches(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[range, np.ndarray[Any, np.dtype[np.float32]]]]:
        """Encode all texts in one batch."""
        yield range(len(texts)), self.encode(texts)

    def _vector(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        words = [int(w[1:]) for w in text.replace(".", " ").split() if w[1:].isdigit()]
        meaning = self._directions[words].sum(axis=0)
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        noise = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
        vector = meaning / np.linalg.norm(meaning) + 0.5 * noise / np.linalg.norm(noise)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@dataclass(frozen=True)
class Scope:
    """An agent and a user."""

    agent_id: UUID
    user_id: str


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="600,5000,20000,100000", help="messages of the scope")
    parser.add_argument("--others", type=int, default=200, help="other scopes, of 250 messages")
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each size")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    sizes = sorted(int(size) for size in arguments.sizes.split(","))
    set_up()
    from memory.embedding.embedder import model_version

    language = Language(model_version())
    report = []
    with throwaway_tenant() as tenant_id:
        agent_id = uuid4()
        started = time.perf_counter()
        for number in range(arguments.others):
            grow(tenant_id, Scope(agent_id, f"other-{number}"), OTHERS_MESSAGES, language)
        print(f"{arguments.others} other scopes after {time.perf_counter() - started:.0f} s")
        scope = Scope(agent_id, "the-one")
        contents: dict[UUID, str] = {}
        for size in sizes:
            started = time.perf_counter()
            contents |= grow(tenant_id, scope, size - len(contents), language)
            seconds = time.perf_counter() - started
            for _ in range(arguments.rounds):
                report.append(measure(tenant_id, scope, contents, language))
                print(f"{size:>8} messages ({seconds:.0f} s): {_line(report[-1])}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def grow(tenant_id: UUID, scope: Scope, count: int, language: Language) -> dict[UUID, str]:
    """Create messages and index them. Return their contents by id."""
    from django.db import transaction

    from memory import indexing
    from memory.models import Message
    from tenants.context import tenant_scope

    indexing.get_embedder = lambda: language  # type: ignore[assignment,return-value]  # its stand-in
    written: dict[UUID, str] = {}
    while len(written) < count:
        batch: list[Message] = []
        while len(batch) < min(BATCH, count - len(written)):
            thread_id = str(uuid4())
            batch += [
                Message(
                    agent_id=scope.agent_id,
                    user_id=scope.user_id,
                    thread_id=thread_id,
                    channel="import",
                    role="assistant" if turn % 2 else "user",
                    content=content,
                )
                for turn, content in enumerate(language.thread())
            ]
        batch = batch[: count - len(written)]
        with tenant_scope(tenant_id), transaction.atomic():
            Message.objects.bulk_create(batch)
            stored = list(Message.objects.filter(id__in=[message.id for message in batch]))
            indexing.index_messages(stored)
        written |= {message.id: message.content for message in batch}
    return written


def measure(
    tenant_id: UUID, scope: Scope, contents: dict[UUID, str], language: Language
) -> dict[str, float]:
    """Ask for single messages. Return milliseconds, and results compared with the exact ranking."""
    from memory.recall import recall
    from memory.recall.policy import RecallPolicy
    from memory.recall.queries import LIMITS, Strategy

    policy = RecallPolicy(gate=False)
    ids = list(contents)
    picked = np.random.default_rng(len(contents)).choice(len(contents), QUESTIONS)
    targets = [ids[position] for position in picked]
    queries = [language.question(contents[target]) for target in targets]
    questions = [(query, language.encode([query])[0]) for query in queries]

    def ask(query: str, vector: np.ndarray) -> set[UUID]:
        hits = recall(
            tenant_id, scope.agent_id, scope.user_id, query, policy=policy, query_embedding=vector
        ).hits
        return {hit.message_id for hit in hits}

    # Each question is asked once, after others, as in production.
    answers, milliseconds = zip(*(timed(ask, *question) for question in questions), strict=True)
    strategies = (
        (Strategy.QUANTIZED, Strategy.HNSW) if len(contents) > LIMITS["whole_scope"] else ()
    )
    by_strategy: dict[Strategy, list[float]] = {strategy: [] for strategy in strategies}
    for question in questions:
        for strategy in strategies:
            with read_by(strategy):
                ask(*question)
                by_strategy[strategy].append(timed(ask, *question)[1])
    with read_by(Strategy.WHOLE):
        exact = [ask(*question) for question in questions]
    found = [target in hits for target, hits in zip(targets, answers, strict=True)]
    found_exactly = [target in hits for target, hits in zip(targets, exact, strict=True)]
    shared = [
        len(hits & all_hits) / len(all_hits) for hits, all_hits in zip(answers, exact, strict=True)
    ]
    return {
        "messages": len(contents),
        "p50": float(np.percentile(milliseconds, 50)),
        "p95": float(np.percentile(milliseconds, 95)),
        "R@10": float(np.mean(found)),
        "R@10_exact": float(np.mean(found_exactly)),
        "shared@10": float(np.mean(shared)),
        **{
            f"p50_{strategy.name.lower()}": float(np.median(by_strategy[strategy]))
            for strategy in strategies
        },
    }


def timed(
    ask: Callable[[str, np.ndarray], set[UUID]], query: str, vector: np.ndarray
) -> tuple[set[UUID], float]:
    """Return the answer and its milliseconds."""
    started = time.perf_counter()
    answer = ask(query, vector)
    return answer, 1000 * (time.perf_counter() - started)


@contextmanager
def read_by(strategy: "Strategy") -> Iterator[None]:
    """Read every scope with this strategy, whatever its size."""
    from memory.recall import service as recall_module
    from memory.recall.queries import LIMITS, Strategy

    limits = {
        Strategy.WHOLE: {"whole_scope": 10**9},
        Strategy.QUANTIZED: {"whole_scope": 0, "scanned_at_least": 10**9},
        Strategy.HNSW: {"whole_scope": 0, "scanned_at_least": 0, "scanned_to_root": 0},
    }
    with (
        mock.patch.dict(LIMITS, limits[strategy]),
        mock.patch.object(recall_module, "_large_scopes", OrderedDict()),
    ):
        yield


def _line(figures: dict[str, float]) -> str:
    strategies = [
        f"{strategy} {figures[f'p50_{strategy}']:.1f}"
        for strategy in ("quantized", "hnsw")
        if f"p50_{strategy}" in figures
    ]
    return (
        f"p50 {figures['p50']:.1f} ms, p95 {figures['p95']:.1f} ms{', '.join(['', *strategies])},"
        f" R@10 {figures['R@10']:.3f} (exact {figures['R@10_exact']:.3f}),"
        f" {figures['shared@10']:.2f} of the ten the same"
    )


if __name__ == "__main__":
    main()
