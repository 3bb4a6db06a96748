"""How texts are best brought through the model: in batches of which size, by which threads.

    python benchmarks/embedding.py --data locomo10.json [--messages 1000]

Cuts the messages into pieces as indexing does, and embeds them in every way, one after the other in
one process: every batch divided among the cores, or a batch for each core; each way three times,
and the best time counts.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locomo import read_dialogues
from throwaway import set_up


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--messages", type=int, default=1000)
    arguments = parser.parse_args()
    set_up()
    import torch

    from memory import embeddings

    cores = torch.get_num_threads()
    embedder = embeddings.get_embedder()
    groups = pieces(arguments.data, arguments.messages)
    count = sum(map(len, groups))
    print(f"{count} pieces of {arguments.messages} messages, {cores} cores")
    for tokens in (1024, embeddings.EMBED_BATCH_TOKENS):
        embeddings.EMBED_BATCH_TOKENS = tokens  # type: ignore[misc]  # what is being compared

        def divided() -> None:
            torch.set_num_threads(cores)
            for group in groups:
                for batch in embedder._batches(list(dict.fromkeys(group))):
                    embedder._embed(batch)

        def side_by_side() -> None:
            for group in groups:
                embedder.encode(group)

        for name, way in (("divided among cores", divided), ("a batch per core", side_by_side)):
            print(f"batches of {tokens:>5} word pieces, {name:<20} {count / best(way):>6.0f}/s")
            torch.set_num_threads(1)
    print(f"a batch costs as much as {cost_of_a_batch(embedder):.0f} word pieces more than it has")


def cost_of_a_batch(embedder: Any) -> float:
    """What a batch takes whatever is in it, in word pieces of a batch that is full of them."""
    texts = [f"{'word ' * 8}{n}" for n in range(30)]
    one, all_of_them = (
        best(lambda: embedder._embed(texts[:1])),
        best(lambda: embedder._embed(texts)),
    )
    for_each_text = (all_of_them - one) / (len(texts) - 1)
    return (one - for_each_text) / for_each_text * embedder.count_tokens(texts[0])


def pieces(path: Path, count: int) -> list[list[str]]:
    """Pieces of the first messages of a file, in groups as the outbox takes them."""
    from memory.chunking import cut_pieces
    from memory.conf import OUTBOX_BATCH
    from memory.embeddings import get_embedder

    embedder = get_embedder()
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


def best(way: Callable[[], object]) -> float:
    """Seconds of the best of three runs."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        way()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


if __name__ == "__main__":
    main()
