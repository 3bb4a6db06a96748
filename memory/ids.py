"""Ids that channels and programs choose, such as a user's: compared exactly, and never changed.

Two ids are equal if they have the same code points. They are not trimmed, folded or normalised:
"zoe", "Zoe" and "zoe " are three users. A new id with characters that break a line or change the
text direction is refused.
"""

import re
from typing import Final

from memory.arguments import id_argument
from memory.exceptions import InvalidArgument
from tenants.audit.pseudonyms import PREFIX

# Control characters, line and paragraph separators, and characters that override text direction.
INVISIBLE: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_PLAIN = re.compile(r"[\x21-\x7e]+")


def new_id_argument(name: str, value: str) -> str:
    """Return an id for new rows: as `id_argument`, and visible.

    Reading and erasing accept other ids, which may be older than this check.

    Raises:
        InvalidArgument: it is blank, or has a character that breaks a line or changes the text
            direction.
    """
    refuse_pseudonym(name, value)
    if found := _INVISIBLE.search(value):
        raise InvalidArgument(
            f"{name}={value[:80]!a} holds U+{ord(found[0]):04X} at {found.start()}, a control"
            " character: ids are one line of text in one direction; remove it"
        )
    if value.isspace():
        raise InvalidArgument(f"{name}={value[:80]!r} is blank")
    return value


def refuse_pseudonym(name: str, value: str) -> None:
    """Refuse an id that is a pseudonym of an erased user, whose entries in the log have it.

    Raises:
        InvalidArgument: it begins with "erased:", or is no id.
    """
    if id_argument(name, value).startswith(PREFIX):
        raise InvalidArgument(
            f"{name}={value[:80]!r} begins with {PREFIX!r}, as the pseudonyms of erased users do;"
            " use another id"
        )


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
