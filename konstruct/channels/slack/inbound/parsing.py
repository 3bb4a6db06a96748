"""What people write in Slack, as readable text: mentions, links and entities. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_TOKEN = re.compile(r"<([^<>]*)>")
_USER: Final = re.compile(r"@[A-Z0-9]+")
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# What people write between a mention and what they want.
_AFTER_MENTION: Final = " \t\r\n,:;–—-"


def plain_text(text: str, *, bot: str, agent: str, names: Mapping[str, str]) -> str:
    """Return what somebody wrote, as a person would read it.

    Args:
        bot: Slack's id of our bot. Its mention at the beginning is left out, for it only says whom
            the message is for; elsewhere it is the agent's name.
        agent: the agent's name.
        names: display names by Slack's ids of users, as far as they are known.
    """
    text = text.strip()
    own = _TOKEN.match(text)
    if own and _target(own[1]) == f"@{bot}":
        text = text[own.end() :].lstrip(_AFTER_MENTION)
    known = {**names, bot: agent}
    readable, end = [], 0
    for found in _TOKEN.finditer(text):
        readable.append(_unescaped(text[end : found.start()]))
        readable.append(_unescaped(_token(found[1], known)))
        end = found.end()
    return "".join((*readable, _unescaped(text[end:]))).strip()


def mentions(text: str, user: str) -> bool:
    """Tell whether a text mentions a user."""
    return any(_target(token) == f"@{user}" for token in _TOKEN.findall(text))


def mentioned_users(text: str) -> set[str]:
    """Return Slack's ids of the users whom a text mentions."""
    targets = {_target(token) for token in _TOKEN.findall(text)}
    return {target[1:] for target in targets if _USER.fullmatch(target)}


def attached(files: Iterable[str]) -> str:
    """Say which files came along; an agent cannot read them here, and shall not pretend to."""
    names = ", ".join(files)
    return f"[Attached, and not to be read here: {names}]" if names else ""


def storable(text: str) -> str:
    """Text as Postgres takes it: JSON can say NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _target(token: str) -> str:
    """Return what a token points to, without its label."""
    return token.partition("|")[0]


def _token(token: str, names: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    kind, rest = target[:1], target[1:]
    if kind == "@":
        return f"@{label or names.get(rest) or rest}"
    if kind == "#":
        return f"#{label or rest}"
    if kind == "!":
        word = rest.partition("^")[0]
        return label or (f"@{word}" if word in ("here", "channel", "everyone") else rest)
    address = target.removeprefix("mailto:").removeprefix("tel:")
    # Slack makes a link of what somebody only wrote: then the label says it all.
    if not label or label in (address, address.removeprefix("http://").removeprefix("https://")):
        return address
    return f"{label} ({address})"


def _unescaped(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
