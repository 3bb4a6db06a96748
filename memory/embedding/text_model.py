"""The interface of a sentence model, for any runtime."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Vectors = np.ndarray[Any, np.dtype[np.float32]]


class TokenizedText(NamedTuple):
    """A text with the ids of the word pieces that the model reads, including the two marks."""

    text: str
    ids: list[int]
    is_unknown: bool = False
    """Whether at least half of its characters are in no word piece, such as those of Amharic in an
    English model."""


def is_mostly_unknown(
    text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]], unknown: int | None
) -> bool:
    """Return whether at least half of the characters of a text are in unknown pieces.

    Args:
        text: the text.
        ids: its word pieces.
        offsets: the first character of each piece, and the one after its last.
        unknown: the id of an unknown piece.
    """
    if unknown not in ids:
        return False
    spans = zip(ids, offsets, strict=True)
    return 2 * sum(end - start for piece, (start, end) in spans if piece == unknown) >= len(text)


class TextModel(Protocol):
    """A loaded sentence model. Every method may be called by many threads."""

    max_tokens: int
    """How many word pieces of a text the model reads, with the two marks around them."""
    dimensions: int
    prompts: Mapping[str, str]
    """The beginning of a "query" and of a "document" that the model was trained with, or "" """

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the texts with their word pieces, cut at `max_tokens`."""

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of the whole text, with the two marks around them."""

    def embed(self, batch: Sequence[TokenizedText]) -> Vectors:
        """Return unit vectors of one batch, computed in this thread, shape (len(batch),
        dimensions).
        """

    def renew_locks(self) -> None:
        """Replace locks that a thread of the parent process may have held at the fork."""
