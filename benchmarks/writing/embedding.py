"""Compare ONNX Runtime and torch: one question, many messages, and memory of a process.

    python -m benchmarks.writing.embedding --data locomo10.json [--messages 500]

Both run the packaged model in one process, in turns: each of the file's first questions, then the
pieces of its first messages, cut and grouped as in indexing, in batches of several sizes. Before,
each loads in a separate process, for its load time and memory.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.tools.locomo import read_dialogues
from benchmarks.tools.throwaway import set_up

RUNTIMES = ("ONNX Runtime", "torch")
QUESTIONS = 200
ROUNDS = 3
LOADING = """
import sys, time
from benchmarks.tools.throwaway import set_up
set_up()
import psutil
from benchmarks.writing.embedding import embedder_of
before = psutil.Process().memory_info().rss
started = time.perf_counter()
embedder_of(sys.argv[1])
loaded = time.perf_counter() - started
print(loaded, before / 2**20, psutil.Process().memory_info().rss / 2**20)
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--messages", type=int, default=500)
    arguments = parser.parse_args()
    set_up()
    for name in RUNTIMES:
        print_loading(name)
    compare_questions(arguments.data)
    compare_messages(arguments.data, arguments.messages)


def embedder_of(runtime: str) -> Any:
    """Return an embedder of the packaged model with that runtime."""
    from memory.embedding import embedder
    from memory.embedding.embedder import Embedder, model_files

    graphs = embedder.GRAPHS
    if runtime == "torch":
        embedder.GRAPHS = Path("/nowhere")  # type: ignore[misc]  # as for a model that has no graph
    try:
        return Embedder(model_files(""))
    finally:
        embedder.GRAPHS = graphs  # type: ignore[misc]


def print_loading(runtime: str) -> None:
    """Print the load time and memory of a separate process, including its imports."""
    project = Path(__file__).resolve().parents[2]
    output = subprocess.run(
        [sys.executable, "-c", LOADING, runtime],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    seconds, before, after = map(float, output.split())
    print(
        f"{runtime:<14}loaded in {seconds:>5.1f} s; resident {before:.0f} MB before,"
        f" {after:.0f} MB after"
    )


def compare_questions(data: Path) -> None:
    """Embed one question at a time with each runtime, in turns."""
    questions = [
        question.text for dialogue in read_dialogues(data, None) for question in dialogue.questions
    ][:QUESTIONS]
    embedders = {name: embedder_of(name) for name in RUNTIMES}
    times: dict[str, list[float]] = {name: [] for name in RUNTIMES}
    for question in questions:
        for name, embedder in embedders.items():
            times[name].append(seconds(lambda e=embedder, q=question: e.encode([q])))  # type: ignore[misc]
    print(f"\none question, ms of CPU, {len(questions)} questions in turns")
    for name in RUNTIMES:
        cut = statistics.quantiles(times[name], n=20)
        print(f"{name:<14}p50 {1000 * cut[9]:>6.1f}  p95 {1000 * cut[18]:>6.1f}")
    ratios = [
        torch_seconds / onnx_seconds
        for onnx_seconds, torch_seconds in zip(*times.values(), strict=True)
    ]
    print(f"torch takes {statistics.median(ratios):.1f} times as long (median of the ratios)")


def compare_messages(data: Path, count: int) -> None:
    """Embed many messages as in indexing with each runtime, in turns."""
    from memory.embedding import embedder as embedding

    embedders = {name: embedder_of(name) for name in RUNTIMES}
    groups = pieces(data, count, embedders[RUNTIMES[0]])
    total = sum(map(len, groups))
    sizes = (256, embedding.EMBED_BATCH_TOKENS, 1024)
    best = {(name, size): float("inf") for name in RUNTIMES for size in sizes}
    usual = embedding.EMBED_BATCH_TOKENS
    for _ in range(ROUNDS):
        for name, size in best:
            embedding.EMBED_BATCH_TOKENS = size  # type: ignore[misc]  # what is being compared
            embedder = embedders[name]
            duration = seconds(lambda e=embedder: [e.encode(group) for group in groups])  # type: ignore[misc]
            best[name, size] = min(best[name, size], duration)
    embedding.EMBED_BATCH_TOKENS = usual  # type: ignore[misc]
    print(f"\n{total} pieces of {count} messages, best of {ROUNDS} rounds in turns, per CPU second")
    print(f"{'batches of':<14}", *(f"{size:>6}" for size in sizes))
    for name in RUNTIMES:
        print(f"{name:<14}", *(f"{total / best[name, size]:>6.0f}" for size in sizes))


def pieces(path: Path, count: int, embedder: Any) -> list[list[str]]:
    """Return pieces of the first messages of a file, in groups as the outbox claims them."""
    from memory.conf import OUTBOX_BATCH
    from memory.text.sentences import cut_pieces

    turns = [turn for dialogue in read_dialogues(path, None) for turn in dialogue.turns][:count]
    cut = [
        cut_pieces(
            turn.content,
            turn.speaker,
            count_tokens=embedder.count_tokens,
            max_tokens=embedder.max_tokens,
        )
        for turn in turns
    ]
    return [
        [piece for message in cut[first : first + OUTBOX_BATCH] for piece in message]
        for first in range(0, len(cut), OUTBOX_BATCH)
    ]


def seconds(way: Callable[[], object]) -> float:
    """Return the CPU seconds of all threads: other load changes them little."""
    started = time.process_time()
    way()
    return time.process_time() - started


if __name__ == "__main__":
    main()
