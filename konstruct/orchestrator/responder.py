"""The built-in responder: quotes what was recalled, where no language model is configured. Pure.

It is honest rather than clever. It says that it is not a language model, it only ever quotes lines
that it was given, and with none that fit it says that it knows nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from konstruct.orchestrator.builder import CONTEXT_OPENING

DISCLAIMER = "(Built-in responder, not a language model.)"
NOTHING = f"I remember nothing that answers this. {DISCLAIMER}"
FOUND = "This is what I remember:"
MAX_LINES = 3

_WORD = re.compile(r"[^\W_]+")
# Words that carry no meaning of their own in a question.
_STOP_WORDS = frozenset(
    """
    a about after again all am an and any are as at be been before by but can could did do does doing
    for from had has have he her hers him his how i if in into is it its just know me mine my no not
    of on or our ours please remember said say she should so some tell than that the their them then
    there these they this to told too us was we were what when where which who whom whose why will
    with would you your yours
    """.split()
)
_SUFFIXES = ("ing", "ies", "ed", "es", "s")


def respond(messages: Sequence[Mapping[str, str]]) -> str:
    """Answer the last user message from the recalled lines and the user's turns in the window."""
    question = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    lines = _unique([*_said_in_window(messages, question), *_recalled(messages)])
    if not lines:
        return NOTHING
    return "\n".join((FOUND, *(f"- {line}" for line in lines[:MAX_LINES]), DISCLAIMER))


def _recalled(messages: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the recalled lines, best first as recall ordered them, without our own old answers."""
    for message in messages:
        if message["role"] == "system" and message["content"].startswith(CONTEXT_OPENING):
            items = re.split(r"\n- ", message["content"])[1:]
            return [" ".join(item.split()) for item in items if DISCLAIMER not in item]
    return []


def _said_in_window(messages: Sequence[Mapping[str, str]], question: str) -> list[str]:
    """Return the user's turns that share at least half of the question's words, best first.

    The window is not recalled, since a model sees it anyway; this responder has only words to go by.
    """
    asked = _words(question)
    scored = []
    for position, message in enumerate(messages[:-1]):
        if message["role"] == "user" and message["content"].strip() != question.strip():
            shared = len(asked & _words(message["content"]))
            if (
                shared
                and 2 * shared >= len(asked)
                and not message["content"].rstrip().endswith("?")
            ):
                scored.append((shared, position, " ".join(message["content"].split())))
    return [text for _, _, text in sorted(scored, reverse=True)]


def _words(text: str) -> set[str]:
    """Return the words that carry meaning, roughly stemmed."""
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in _STOP_WORDS}


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
