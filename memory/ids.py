"""Ids that channels and programs choose, such as a user's: compared exactly, and never changed.

Two ids are one if they are the same code points. Nothing trims, folds or normalises them: "zoe",
"Zoe" and "zoe " are three users. What breaks a line, or turns the direction in which it is shown,
is refused in a new id.
"""

import re
from typing import Final

from memory.arguments import id_argument
from memory.exceptions import InvalidArgument

# Control characters, line and paragraph separators, and what overrides the direction of text.
UNSEEN: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_UNSEEN = re.compile(f"[{UNSEEN}]")
_PLAIN = re.compile(r"[\x21-\x7e]+")


def new_id_argument(name: str, value: str) -> str:
    """An id under which something is written: as `id_argument`, and one that can be seen.

    What is read or erased may have another: it was written before this was checked.

    Raises:
        InvalidArgument: it is blank, or holds a character that breaks a line or turns its
            direction.
    """
    id_argument(name, value)
    if found := _UNSEEN.search(value):
        raise InvalidArgument(
            f"{name}={value[:80]!a} holds U+{ord(found[0]):04X} at {found.start()}, a control"
            " character: ids are one line of text in one direction; remove it"
        )
    if value.isspace():
        raise InvalidArgument(f"{name}={value[:80]!r} is blank")
    return value


def spelled(value: str) -> str:
    """The id with each character that is no visible ASCII as its code point; empty if none is.

    For people who must tell apart ids that look alike.
    """
    if _PLAIN.fullmatch(value):
        return ""
    return "".join(
        character if _PLAIN.fullmatch(character) else f"\u2039U+{ord(character):04X}\u203a"
        for character in value
    )
