"""Ids that channels and programs choose, such as a user's: compared exactly, and never changed.

Two ids are equal if they have the same code points. They are not trimmed, folded or normalised:
"zoe", "Zoe" and "zoe " are three users. A new id with an invisible character is refused.
"""

import re
from typing import Final

from memory.arguments import id_argument, invisible_character, is_blank
from memory.exceptions import InvalidArgument
from tenants.audit.pseudonyms import PREFIX

_PLAIN: Final = re.compile(r"[\x21-\x7e]+")


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
