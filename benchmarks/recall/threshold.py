"""Measure a fixed threshold of `retrieve_relevant`: evidence and other messages above it.

    python -m benchmarks.recall.threshold locomo.json

Each message is embedded in two ways: in pieces with its speaker, as the pipeline does, and whole,
as callers of `store_embedding` do. For every question and every message that answers it, the best
cosine of the message's pieces is compared with the threshold. `others` is the number of other
messages of the dialogue above it; `top_k` decides among all of these. The last lines give the
thresholds that keep half and nine tenths of the evidence.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tools.locomo import Dialogue, Turn, read_dialogues
from benchmarks.tools.throwaway import set_up

if TYPE_CHECKING:
    from memory.embedding.embedder import Embedder

THRESHOLDS = (0.75, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)
KEPT_SHARES = (0.5, 0.9)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locomo", type=Path, help="a LoCoMo file")
    dialogues = read_dialogues(parser.parse_args().locomo)
    set_up()
    from memory.embedding.embedder import get_embedder
    from memory.text.sentences import cut_pieces

    embedder = get_embedder()

    def pieces_of(turn: Turn) -> list[str]:
        return cut_pieces(
            turn.content,
            turn.speaker,
            count_tokens=embedder.count_tokens,
            max_tokens=embedder.max_tokens,
        )

    ways = {"pieces": pieces_of, "whole texts": lambda turn: [turn.content]}
    measured = {name: measure(dialogues, texts_of, embedder) for name, texts_of in ways.items()}
    for name, (evidence, others) in measured.items():
        print(f"{name}: {len(others)} questions, {len(evidence)} pairs of question and evidence")
        print(f"{'threshold':>10}{'evidence kept':>16}{'others per question':>22}")
        for threshold in THRESHOLDS:
            passing = np.mean([(row >= threshold).sum() for row in others])
            print(f"{threshold:>10.2f}{(evidence >= threshold).mean():>16.4f}{passing:>22.1f}")
        for share in KEPT_SHARES:
            least = np.quantile(evidence, 1 - share)
            print(f"{share:.0%} of the evidence is kept from {least:.2f} down")


def measure(
    dialogues: list[Dialogue], texts_of: Callable[[Turn], list[str]], embedder: "Embedder"
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the best cosines of all evidence, shape (pairs,), and of other messages."""
    evidence: list[float] = []
    others: list[np.ndarray] = []
    for dialogue in dialogues:
        texts = [texts_of(turn) for turn in dialogue.turns]
        owners = [number for number, own in enumerate(texts) for _ in own]
        vectors = embedder.encode([text for own in texts for text in own])
        cosines = embedder.encode([q.text for q in dialogue.questions], is_query=True) @ vectors.T
        best = np.full((len(dialogue.questions), len(dialogue.turns)), -1.0)
        for number, column in zip(owners, cosines.T, strict=True):
            best[:, number] = np.maximum(best[:, number], column)
        for question, row in zip(dialogue.questions, best, strict=True):
            answers = np.array([turn.id in question.evidence for turn in dialogue.turns])
            evidence += row[answers].tolist()
            others.append(row[~answers])
    return np.array(evidence), others


if __name__ == "__main__":
    main()
