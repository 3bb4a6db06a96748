"""Strict reading of JSON from outside: in linear time, with limited depth, without duplicates."""

import json
from typing import Any, Final

# Metadata may be nested 16 deep. Python's own limit depends on the caller's stack: a value that can
# be read in one place could not be written in another.
MAX_DEPTH: Final = 64
# Invalid names are shown up to this length.
MAX_NAME_CHARACTERS: Final = 100


class NotStrictJSON(ValueError):
    """The text is not JSON, or it can be read in two ways."""


def read_json(text: str | bytes) -> Any:
    """Read JSON. Bytes are UTF-8.

    Raises:
        NotStrictJSON: it is no JSON, is nested too deeply, or gives a name twice in one object.
    """
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_build_object,
            parse_constant=_refuse_constant,
        )
    except NotStrictJSON:
        raise
    except RecursionError:
        raise _depth_error() from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NotStrictJSON(f"JSON parse error - {error}") from error
    except ValueError as error:  # Python refuses longer numbers, which take quadratic time
        raise NotStrictJSON("A number has more than 4,300 digits.") from error
    _check_depth(value)
    return value


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; refuse duplicate names, which are ambiguous."""
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotStrictJSON(
                    f"The name {name[:MAX_NAME_CHARACTERS]!r} is given twice in one object."
                )
            seen.add(name)
    return members


def _refuse_constant(constant: str) -> None:
    raise NotStrictJSON(f"{constant} is no JSON.")


def _check_depth(value: Any) -> None:
    """Refuse values nested deeper than `MAX_DEPTH`, in one pass."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise _depth_error()
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]


def _depth_error() -> NotStrictJSON:
    return NotStrictJSON(f"The JSON is nested too deeply: deeper than {MAX_DEPTH} levels.")
