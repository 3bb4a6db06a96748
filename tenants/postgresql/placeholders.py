"""Django's placeholders for values as Postgres' own: $1, $2, …"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg

_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(.?))", re.DOTALL)


@lru_cache(maxsize=1024)
def numbered(query: str) -> tuple[bytes, tuple[str, ...] | int]:
    """The statement with $1, $2, … for its values, and their names in that order, or how many.

    Raises:
        psycopg.ProgrammingError: a % begins no placeholder, or some are named and others not.
    """
    names: dict[str, int] = {}
    unnamed = 0

    def number(found: re.Match[str]) -> str:
        nonlocal unnamed
        if name := found[1]:
            return f"${names.setdefault(name, len(names) + 1)}"
        if found[2] == "%":
            return "%"
        if found[2] != "s":
            raise psycopg.ProgrammingError(
                f"only '%s', '%(name)s' and '%%' are allowed in a statement, not {found[0]!r}"
            )
        unnamed += 1
        return f"${unnamed}"

    sql = _PLACEHOLDER.sub(number, query).encode()
    if names and unnamed:
        raise psycopg.ProgrammingError("named and unnamed values cannot be mixed in a statement")
    return sql, tuple(names) if names else unnamed


def values_of(wanted: tuple[str, ...] | int, params: Any) -> Sequence[Any]:
    """The values in the order of their numbers.

    Raises:
        psycopg.ProgrammingError: there are more or fewer than the statement wants.
    """
    if isinstance(wanted, int):
        if isinstance(params, Mapping) and wanted:
            raise psycopg.ProgrammingError("the statement's values have no names")
        if not isinstance(params, Mapping) and len(params) != wanted:
            raise psycopg.ProgrammingError(
                f"the statement has {wanted} placeholders, but {len(params)} values were given"
            )
        return params if wanted else ()
    if not isinstance(params, Mapping):
        raise psycopg.ProgrammingError("the statement's values have names: give a mapping")
    try:
        return [params[name] for name in wanted]
    except KeyError as missing:
        raise psycopg.ProgrammingError(f"the value {missing} is missing") from None
