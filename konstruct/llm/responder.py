"""The built-in responder: quotes recalled lines if no language model is configured. Pure.

Its answers say that it is not a language model, and quote only lines of the prompt. Greetings,
thanks and goodbyes are answered without a quote. If no line matches, a question is answered with
NOTHING and a statement with NOTED.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from konstruct.llm.completions import Completion, CompletionRequest, OnText, RequestedCall
from memory.conf import RESPONDER_MARK
from memory.context.chat import CONTEXT_OPENING, EARLIER, KNOWN, without_date_prefixes
from memory.text.chunking import split_sentences
from memory.text.lexical import lexemes
from memory.text.questions import is_question
from tenants.traces import traced

DISCLAIMER = RESPONDER_MARK
NOTHING = f"I remember nothing that answers this. {DISCLAIMER}"
NOTED = f"I will remember that. {DISCLAIMER}"
NOT_DONE = f"I have not remembered that. {DISCLAIMER}"
FOUND = "This is what I remember:"
MAX_RECALLED = 3
MAX_FROM_WINDOW = 2

REMEMBER = "remember_fact"
# "Remember that …", "Please remember: …", and not "Do you remember that …".
# All quantifiers are possessive, so that the time is linear.
_TO_REMEMBER = re.compile(
    r"\s*+(?:please\b[\s,]*+)?+remember(?:\s++this\b)?+(?:\s*+(?::|,\s++that\b)|\s++that\b)"
    r"\s*+(?P<fact>\S.*+)",
    re.I | re.S,
)

_WORD = re.compile(r"[^\W_]+")
# Words without a meaning of their own in a question, besides the stop words of recall.
_QUESTION_LEXEMES: Final = frozenset(lexemes("could know mine please remember say tell us would"))

# A longer message is not small talk.
MAX_SMALL_TALK_CHARACTERS: Final = 80
# "Good morning, Frau Keller"
MAX_NAME_WORDS: Final = 2


_SMALL_TALK: Final = tomllib.loads(Path(__file__).with_name("small_talk.toml").read_text("utf-8"))
# Words that small talk may contain besides its phrases.
_FILLER_WORDS: Final = frozenset(
    _WORD.findall(
        "again all everyone everybody team friend dear my and so very much a lot for your the help"
        " that helps helped was is great ok okay well today too you"
    )
)


def _plain(text: str) -> str:
    """Return the words of a text without accents, in lower case, one space between two."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(_WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c))))


# The answer to each phrase, and its weight. The highest weight wins: "thanks, bye" is a goodbye.
_ANSWERS: Final[dict[str, tuple[int, str]]] = {
    _plain(phrase): (weight, f"{language[f'{kind}_answer']} {DISCLAIMER}")
    for language in _SMALL_TALK.values()
    for weight, kind in enumerate(("greetings", "thanks", "goodbyes"))
    for phrase in language[kind].split(",")
}
MAX_PHRASE_WORDS: Final = max(len(phrase.split()) for phrase in _ANSWERS)


def small_talk(text: str) -> str | None:
    """Return the answer to a message that only greets, thanks or says goodbye.

    Returns:
        The answer in the language of the message: English, German, French or Spanish. None for
        every other message, and for one of more than MAX_SMALL_TALK_CHARACTERS.
    """
    if len(text) > MAX_SMALL_TALK_CHARACTERS:
        return None
    written = _WORD.findall(unicodedata.normalize("NFC", text))
    words = [_plain(word) for word in written]
    found: list[tuple[int, str]] = []
    at = name_words = 0
    while at < len(words):  # each iteration consumes at least one word
        for length in range(MAX_PHRASE_WORDS, 0, -1):
            answer = _ANSWERS.get(" ".join(words[at : at + length]))
            if answer is not None:
                found.append(answer)
                at, name_words = at + length, MAX_NAME_WORDS
                break
        else:
            is_name = name_words > 0 and written[at][0].isupper()
            if not (is_name or words[at] in _FILLER_WORDS):
                return None
            at, name_words = at + 1, name_words - 1 if is_name else 0
    return max(found)[1] if found else None


@dataclass(frozen=True)
class BuiltInResponder:
    """Answers without a language model, by quoting."""

    @traced("model")
    def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Quote lines that match the last user message, or call the tool that remembers a fact.

        `on_text` is not called.
        """
        last = request.messages[-1]
        if last["role"] == "tool":
            return Completion(answer_tool_result(last["content"]))
        offered = request.tools if request.accepts_calls else ()
        requested = requested_tool_call(request.messages, offered)
        if requested is not None:
            return Completion("", (requested,))
        return Completion(respond(request.messages))


def respond(messages: Sequence[Mapping[str, Any]]) -> str:
    """Answer the last user message from the recalled lines and the user's turns in the window."""
    question = next((_text_of(m) for m in reversed(messages) if m["role"] == "user"), "")
    small_talk_answer = small_talk(question)
    if small_talk_answer is not None:
        return small_talk_answer
    from_window = _lines_of_window(messages, question)[:MAX_FROM_WINDOW]
    recalled = _recalled_lines(messages)[:MAX_RECALLED]
    if not from_window and not recalled:
        return NOTHING if any(map(is_question, split_sentences(question))) else NOTED
    return "\n".join((FOUND, *(f"- {line}" for line in (*from_window, *recalled)), DISCLAIMER))


def requested_tool_call(
    messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]
) -> RequestedCall | None:
    """Return a call of the tool remember_fact if the user asks to remember something; or None.

    None also if the tool is not among `tools`.
    """
    text = _text_of(messages[-1])
    match = _TO_REMEMBER.fullmatch(text)
    if match is None or text.rstrip().endswith("?"):
        return None
    if not any(tool["function"]["name"] == REMEMBER for tool in tools):
        return None
    return RequestedCall("call_0", REMEMBER, {"fact": " ".join(match["fact"].split())})


def answer_tool_result(result: str) -> str:
    """Return the answer after the result of the tool."""
    was_done = result.startswith(("Remembered", "This was known"))
    return f"{result} {DISCLAIMER}" if was_done else NOT_DONE


def _recalled_lines(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the recalled lines, best first, without earlier answers of the responder."""
    for message in messages:
        if message["role"] == "system" and message["content"].startswith(CONTEXT_OPENING):
            items = message["content"].split("\n- ")[1:]
            return [
                " ".join(item.split())
                for item in items
                if DISCLAIMER not in item and not item.startswith((EARLIER, KNOWN))
            ]
    return []


def _lines_of_window(messages: Sequence[Mapping[str, Any]], question: str) -> list[str]:
    """Return statements of the user with at least half of the question's words, best first.

    Recall does not return turns of the window, because a language model reads the window anyway.
    """
    question_words = _lexemes(question)
    scored = []
    for position, message in enumerate(messages[:-1]):
        text = " ".join(_text_of(message).split())
        shared = len(question_words & _lexemes(text))
        if (
            message["role"] == "user"
            and 0 < len(question_words) <= 2 * shared
            and not text.endswith("?")
        ):
            scored.append((shared, position, text))
    return [text for _, _, text in sorted(scored, reverse=True)]


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message without the date that prompts have before turns."""
    return without_date_prefixes(message["content"])


def _lexemes(text: str) -> set[str]:
    return set(lexemes(text)) - _QUESTION_LEXEMES
