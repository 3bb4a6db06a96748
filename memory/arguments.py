"""Checks of arguments of memory's public functions. The error message has the value."""

import math
import unicodedata
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np

from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import InvalidArgument

ROLES = ("user", "assistant")
# Postgres limits an index entry to a third of a page; a channel's user id is far shorter.
MAX_ID_BYTES = 1024
# Fillers of Hangul, the empty pattern of Braille, and the selectors of variants.
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0\ufe0e\ufe0f")


def uuid_argument(name: str, value: UUID | str) -> UUID:
    """Return a UUID from a UUID or its text."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(f"{name}={value!r} is not a UUID") from None


def text_argument(name: str, value: str) -> str:
    """Return the text, which Postgres must be able to store: no NUL, no lone surrogates."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}={value!r} is not text")
    if "\x00" in value:
        raise InvalidArgument(
            f"{name}={value[:80]!r} holds a NUL character at {value.index(chr(0))}; remove it"
        )
    if not is_unicode(value):
        place = next(n for n, character in enumerate(value) if not is_unicode(character))
        raise InvalidArgument(f"{name} holds half of a surrogate pair at {place}: {value[place]!r}")
    return value


def content_argument(value: str | None) -> str:
    """Return the text, which must be storable and not blank."""
    if value is None:
        raise InvalidArgument("content is missing: give the text that is to be remembered")
    if is_blank(text_argument("content", value)):
        raise InvalidArgument(f"content={value!r} is blank: give the text that is to be remembered")
    return value


def is_blank(text: str) -> bool:
    """Return whether a text has only spaces and characters that nobody sees."""
    return all(
        character.isspace()
        or character in BLANK_LETTERS
        or unicodedata.category(character) in ("Cc", "Cf")
        for character in text
    )


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can encode the text: JSON may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def id_argument(name: str, value: str) -> str:
    """Return the id of a channel: text, not empty, short enough for an index."""
    text_argument(name, value)
    if not value:
        raise InvalidArgument(f"{name}='' is empty")
    if len(value.encode()) > MAX_ID_BYTES:
        raise InvalidArgument(f"{name}={value[:80]!r}… is longer than {MAX_ID_BYTES} bytes")
    return value


def role_argument(value: str) -> str:
    """Return the role, which must be one of ROLES."""
    if value not in ROLES:
        raise InvalidArgument(f"role={value!r} is not one of {', '.join(ROLES)}")
    return value


def count_argument(name: str, value: int, *, minimum: int = 1) -> int:
    """Return the number, which must be a whole one of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InvalidArgument(f"{name}={value!r} is not a whole number of at least {minimum}")
    return int(value)


def similarity_argument(name: str, value: float) -> float:
    """Return the cosine similarity, which must be from -1 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not -1 <= float(value) <= 1:
        raise InvalidArgument(f"{name}={value!r} is not a number from -1 to 1")
    return float(value)


def vector_argument(name: str, value: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    """Return the vector as a list: 384 finite numbers, not all zero."""
    try:
        vector = np.asarray(value)
    except ValueError:
        raise InvalidArgument(f"{name} is not a flat list of numbers") from None
    if vector.ndim != 1 or vector.dtype.kind not in "fiu":
        raise InvalidArgument(
            f"{name} is not a flat list of numbers: shape {vector.shape}, {vector.dtype}"
        )
    if vector.size != EMBEDDING_DIMENSIONS:
        raise InvalidArgument(f"{name} has {vector.size} dimensions, not {EMBEDDING_DIMENSIONS}")
    with np.errstate(all="ignore"):
        single = vector.astype(np.float32)
        # Postgres sums in single precision: values that overflow or vanish there have no direction.
        length = float(np.dot(single, single))
    if not np.isfinite(single).all():
        position = int(np.flatnonzero(~np.isfinite(single))[0])
        raise InvalidArgument(f"{name}[{position}]={vector[position]} is not a finite number")
    if length == 0 or not math.isfinite(length):
        raise InvalidArgument(f"{name} has no direction: its squared length is {length}")
    return list(single.tolist())
