"""Checks of arguments of memory's public functions. The error message has the value.

Channels and programs choose ids, such as a user's: they are compared exactly, and never changed.
Two ids are equal if they have the same code points. They are not trimmed, folded or normalised:
"zoe", "Zoe" and "zoe " are three users. A new id with an invisible character is refused.
"""

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from numbers import Integral, Real
from typing import Any, Final
from uuid import UUID
from zoneinfo import available_timezones

import numpy as np
from numpy.typing import ArrayLike

from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import InvalidArgument
from tenants.naming import as_uuid

ROLES = ("user", "assistant")
# Postgres limits an index entry to a third of a page; a channel's user id is far shorter.
MAX_ID_BYTES = 1024
# Characters without a shape: controls, separators of lines and paragraphs, marks of direction,
# hyphens and spaces without width, fillers, the empty pattern of Braille, selectors of variants.
_INVISIBLE: Final = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b"
    r"\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0"
)
# Characters that change the shape of their neighbours in some scripts, and of emoji.
_SELECTORS: Final = r"\ufe0e\ufe0f"
_JOINERS: Final = r"\u200c\u200d"
# Tags, and marks of shorthand and music.
_FURTHER: Final = r"\U000e0000-\U000e0fff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
# From Arabic to Sinhala, Burmese, Khmer, Mongolian; arrows and symbols; emoji.
_SHAPED: Final = (
    r"[\u0600-\u0dff\u1000-\u109f\u1780-\u17d3\u1820-\u18af\u2190-\u2bff\U0001f000-\U0001faff]"
)
_BLANK: Final = re.compile(rf"[\s{_INVISIBLE}{_SELECTORS}{_JOINERS}{_FURTHER}]*")
_UNSEEN: Final = re.compile(
    rf"[{_INVISIBLE}{_FURTHER}]|(?<!{_SHAPED})[{_SELECTORS}]"
    rf"|(?<!{_SHAPED})(?<!{_SHAPED}[{_SELECTORS}])[{_JOINERS}]|[{_JOINERS}]\Z"
)
_PLAIN: Final = re.compile(r"[\x21-\x7e]+")
# SQLAlchemy's syntax for a driver: postgresql+asyncpg://
_DRIVER: Final = re.compile(r"^(postgres(?:ql)?)\+\w+://")
# Times of messages: no chat is older, and the clock of another system may be ahead.
MIN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_TIME_AHEAD: Final = timedelta(minutes=5)


def uuid_argument(name: str, value: UUID | str) -> UUID:
    """Return a UUID from a UUID or its text."""
    if (uuid := as_uuid(value)) is None:
        raise InvalidArgument(f"{name}={value!r} is not a UUID")
    return uuid


def text_argument(name: str, value: str) -> str:
    """Return the text, which Postgres must be able to store: no NUL, no lone surrogates."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}={value!r} is not text")
    if "\x00" in value:
        raise InvalidArgument(
            f"{name}={value[:80]!r} holds U+0000 (NUL) at {value.index(chr(0))}; remove it"
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
        raise InvalidArgument(f"content={value!r} is blank: give visible text")
    return value


def is_blank(text: str) -> bool:
    """Return whether a text has only spaces and invisible characters."""
    return _BLANK.fullmatch(text) is not None


def invisible_character(text: str) -> str:
    """Return the first invisible character of an id or a name, with its place; "" without one.

    Joiners and selectors of variants are visible after a letter or an emoji that they change.
    """
    found = _UNSEEN.search(text)
    if found is None:
        return ""
    name = unicodedata.name(found[0], "a control character")
    return f"U+{ord(found[0]):04X} ({name}) at {found.start()}"


def name_argument(name: str, value: str) -> str:
    """Return the display name of a person: text, without invisible characters."""
    if found := invisible_character(text_argument(name, value)):
        raise InvalidArgument(f"{name}={value[:80]!a} holds {found}; remove it")
    return value


def utc_argument(name: str, value: object) -> datetime:
    """Return the time in UTC; the datetime must have a time zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidArgument(f"{name}={value!r} is not a time with a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(f"{name}={value!r} lies outside the years 1 to 9999 in UTC") from None


def time_argument(name: str, value: datetime) -> datetime:
    """Return the time of a message: with a time zone, from MIN_TIME to MAX_TIME_AHEAD of now."""
    if value.tzinfo is None:
        raise InvalidArgument(f"{name}={value} has no time zone: add Z or +02:00")
    now = datetime.now(UTC)
    if not MIN_TIME <= value <= now + MAX_TIME_AHEAD:
        raise InvalidArgument(
            f"{name}={value.isoformat()} is no time of a message: give one from"
            f" {MIN_TIME:%Y-%m-%dT%H:%M:%SZ} to now ({now:%Y-%m-%dT%H:%M:%SZ})"
        )
    return value


@functools.cache
def time_zones() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones() - {"localtime"})


def time_zone_argument(name: str, value: str) -> str:
    """Return the name of a time zone, such as Europe/Berlin; "" is allowed."""
    if value and value not in time_zones():
        raise InvalidArgument(f"{name}={value!r} is no time zone: give one such as Europe/Berlin")
    return value


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


def new_id_argument(name: str, value: str) -> str:
    """Return an id for new rows: as `id_argument`, and visible.

    Reading and erasing accept other ids, which may be older than this check.

    Raises:
        InvalidArgument: it has an `id_problem`.
    """
    if problem := id_problem(id_argument(name, value)):
        raise InvalidArgument(f"{name}={value[:80]!a} {problem}")
    return value


def id_problem(value: str) -> str:
    """Return why a text is no id of new rows; "" if it is one."""
    if found := invisible_character(value):
        return f"holds {found}: ids and names are one line of visible text; remove it"
    if is_blank(value):
        return "is blank"
    if value in (".", ".."):
        return "is a part of addresses, so that none leads to it; use another id"
    return pseudonym_problem(value)


def pseudonym_problem(value: str) -> str:
    """Return that an id is the pseudonym of an erased user in the log, or ""."""
    from tenants.audit.people import PREFIX  # needs Django, without which an archive is read

    if not value.startswith(PREFIX):
        return ""
    return f"begins with {PREFIX!r}, as the pseudonyms of erased users do; use another id"


def as_code_points(value: str) -> str:
    """Return the id with characters other than visible ASCII as code points; "" if there are none.

    For people who have to distinguish similar ids.
    """
    if _PLAIN.fullmatch(value):
        return ""
    return "".join(
        character if _PLAIN.fullmatch(character) else f"\u2039U+{ord(character):04X}\u203a"
        for character in value
    )


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


def number_argument(name: str, value: float, *, minimum: float, maximum: float) -> float:
    """Return the number, which must be from `minimum` to `maximum`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not minimum <= float(value) <= maximum:
        raise InvalidArgument(f"{name}={value!r} is not a number from {minimum} to {maximum}")
    return float(value)


def similarity_argument(name: str, value: float) -> float:
    """Return the cosine similarity, which must be from -1 to 1."""
    return number_argument(name, value, minimum=-1, maximum=1)


def vector_argument(name: str, value: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    """Return the vector as a list: 384 finite numbers, not all zero."""
    return list(vector_array(name, value, EMBEDDING_DIMENSIONS).tolist())


def vector_array(name: str, value: ArrayLike, dimensions: int) -> np.ndarray[Any, Any]:
    """Return the vector as an array in single precision: finite numbers, not all zero."""
    try:
        vector = np.asarray(value)
    except ValueError:
        raise InvalidArgument(f"{name} is not a flat list of numbers") from None
    if vector.ndim != 1 or vector.dtype.kind not in "fiu":
        raise InvalidArgument(
            f"{name} is not a flat list of numbers: shape {vector.shape}, {vector.dtype}"
        )
    if vector.size != dimensions:
        raise InvalidArgument(f"{name} has {vector.size} dimensions, not {dimensions}")
    with np.errstate(all="ignore"):
        single = vector.astype(np.float32)
        # Postgres and sqlite-vec sum in single precision: values that overflow or vanish there have
        # no direction.
        length = float(np.dot(single, single))
    if not np.isfinite(single).all():
        position = int(np.flatnonzero(~np.isfinite(single))[0])
        raise InvalidArgument(f"{name}[{position}]={vector[position]} is not a finite number")
    if length == 0 or not math.isfinite(length):
        raise InvalidArgument(f"{name} has no direction: its squared length is {length}")
    return single


def require_configured_database(url: str | None) -> None:
    """Accept None, and the URL of the database of this process.

    Passwords are neither compared nor shown.

    Raises:
        InvalidArgument: it is another database, or no URL of one.
    """
    if url is None:
        return
    # Archives are read without Django and psycopg.
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    from tenants.context import tenant_connection

    try:
        given = conninfo_to_dict(_DRIVER.sub(r"\1://", url))
    except (ProgrammingError, TypeError):
        raise InvalidArgument("database_url is not the URL of a PostgreSQL database") from None
    configured = tenant_connection().get_connection_params()
    given.setdefault("user", configured.get("user"))
    own, other = (
        f"{database.get('host') or 'localhost'}:{database.get('port') or 5432}"
        f"/{database.get('dbname')} as {database.get('user')}"
        for database in (configured, given)
    )
    if own != other:
        raise InvalidArgument(
            f"this process uses the database {own}, not {other}: leave database_url out, or set"
            " DATABASE_URL and start again"
        )
