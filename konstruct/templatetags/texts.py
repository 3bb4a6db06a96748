"""Texts of people's in pages."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django import template
from django.utils.translation import get_language_info, gettext

from tenants.error_texts import translate_error

register = template.Library()


@register.filter
def shorten(text: object, length: int) -> str:
    """The beginning of a text, with an ellipsis if there is more.

    Django's `truncatechars` normalises the whole text before, which takes the square of a run of
    combining marks: a second for one message of 32,000.
    """
    whole = str(text)
    return whole if len(whole) <= length else f"{whole[: length - 1]}…"


@register.filter
def translated(words: object) -> str:
    """Words that rows have in English, one or several with commas, in the reader's language."""
    return ", ".join(gettext(word) for word in str(words).split(", "))


register.filter(translate_error)


@register.filter
def speaker(turn: Any, agent: object = "") -> str:
    """The name of a message's author; else the name or id of the person, or the name of the agent.

    The name of the person is `person_name` of the message. The agent is that of the argument, or
    `agent_name` of the message. Without these it is the role, in the reader's language.
    """
    get = turn.get if isinstance(turn, Mapping) else partial(getattr, turn)
    role = str(get("role", ""))
    person = get("person_name", "") or get("user_id", "")
    other = person if role == "user" else agent or get("agent_name", "")
    return shorten(get("name", "") or other or translated(role), 60)


@register.filter
def language_names(codes: Iterable[str]) -> str:
    """Return the names of languages in the reader's language, sorted.

    "zh" is that of all text without spaces between words: Chinese, Japanese, Thai.
    """
    unspaced = {"zh": gettext("Chinese, Japanese and Thai")}
    names = (unspaced.get(code) or gettext(get_language_info(code)["name"]) for code in codes)
    return ", ".join(sorted(names))


@register.filter
def or_word(text: str, word: object) -> str:
    """A text; for an empty one a word that rows have in English, in the reader's language."""
    return text or translated(word)
