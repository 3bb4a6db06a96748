"""The built-in responder: quotes what was recalled, where no language model is configured. Pure.

It is honest rather than clever. It says that it is not a language model, it only ever quotes lines
that it was given, and with none that fit it says that it knows nothing, or, of what is no question,
that it will remember it, which the pipeline sees to.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from konstruct.orchestrator.llm.wire import Requested
from memory.context.chat import CONTEXT_OPENING
from memory.text.chunking import split_sentences
from memory.text.questions import is_question

DISCLAIMER = "(Built-in responder, not a language model.)"
NOTHING = f"I remember nothing that answers this. {DISCLAIMER}"
NOTED = f"I will remember that. {DISCLAIMER}"
NOT_DONE = f"I have not remembered that. {DISCLAIMER}"
FOUND = "This is what I remember:"
MOST_RECALLED = 3
MOST_FROM_WINDOW = 2

REMEMBER = "remember_fact"
# "Remember that …", "Please remember: …", and not "Do you remember that …".
# Possessive throughout: no part gives back what another could take, so that it is read once.
_TO_REMEMBER = re.compile(
    r"\s*+(?:please\b[\s,]*+)?+remember(?:\s++this\b)?+(?:\s*+(?::|,\s++that\b)|\s++that\b)"
    r"\s*+(?P<fact>\S.*+)",
    re.I | re.S,
)

_WORD = re.compile(r"[^\W_]+")
# Words that carry no meaning of their own in a question.
_LITTLE_WORDS = (
    "a about after again all am an and any are as at be been before but by can could did do "
    "does doing for from had has have he her hers him his how i if in into is it its just know "
    "me mine my no not of on or our ours please remember s said say she should so some t tell "
    "than that the their them then there these they this to told too us was we were what when "
    "where which who whom whose why will with would you your yours "
)
_STOP_WORDS = frozenset(_LITTLE_WORDS.split())
_ENDINGS = {"ing": "", "ies": "y", "ed": "", "es": "", "s": "", "e": ""}


def respond(messages: Sequence[Mapping[str, Any]]) -> str:
    """Answer the last user message from the recalled lines and the user's turns in the window."""
    question = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    just_said = _said_in_window(messages, question)[:MOST_FROM_WINDOW]
    recalled = _recalled(messages)[:MOST_RECALLED]
    if not just_said and not recalled:
        return NOTHING if any(map(is_question, split_sentences(question))) else NOTED
    return "\n".join((FOUND, *(f"- {line}" for line in (*just_said, *recalled)), DISCLAIMER))


def tool_wanted(
    messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]
) -> Requested | None:
    """The call for what the user explicitly asks to be remembered, if there is the tool for it."""
    said = messages[-1]["content"]
    found = _TO_REMEMBER.fullmatch(said)
    if found is None or said.rstrip().endswith("?"):
        return None
    if not any(tool["function"]["name"] == REMEMBER for tool in tools):
        return None
    return Requested("call_0", REMEMBER, {"fact": " ".join(found["fact"].split())})


def after_tool(result: str) -> str:
    """Answer once the tool has said what came of it."""
    was_done = result.startswith(("Remembered", "This was known"))
    return f"{result} {DISCLAIMER}" if was_done else NOT_DONE


def _recalled(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the recalled lines, best first as recall ordered them, without our own old answers."""
    for message in messages:
        if message["role"] == "system" and message["content"].startswith(CONTEXT_OPENING):
            items = message["content"].split("\n- ")[1:]
            return [" ".join(item.split()) for item in items if DISCLAIMER not in item]
    return []


def _said_in_window(messages: Sequence[Mapping[str, Any]], question: str) -> list[str]:
    """Return the user's statements that share at least half of the question's words, best first.

    The window is not recalled, since a model sees it anyway; here there are only words to go by.
    """
    asked = _words(question)
    scored = []
    for position, message in enumerate(messages[:-1]):
        said = " ".join(message["content"].split())
        shared = len(asked & _words(said))
        if message["role"] == "user" and 0 < len(asked) <= 2 * shared and not said.endswith("?"):
            scored.append((shared, position, said))
    return [said for _, _, said in sorted(scored, reverse=True)]


def _words(text: str) -> set[str]:
    """Return the words that carry meaning, roughly stemmed."""
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in _STOP_WORDS}


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS.items():
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + instead
    return word
