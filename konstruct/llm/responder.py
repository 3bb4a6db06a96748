"""The built-in responder: quotes recalled lines if no language model is configured. Pure.

Its answers say that it is not a language model, and quote only lines of the prompt. Greetings,
thanks and goodbyes are answered without a quote. If no line matches, a question is answered with
NOTHING and a statement with NOTED.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from konstruct.llm.completions import Completion, CompletionRequest, OnText, RequestedCall
from memory.conf import RESPONDER_MARK
from memory.context.chat import CONTEXT_OPENING, EARLIER, KNOWN, without_date_prefixes
from memory.text.lexical import lexemes
from memory.text.sentences import is_question, split_sentences
from tenants import traces

DISCLAIMER = RESPONDER_MARK
NOTHING = f"I remember nothing that answers this. {DISCLAIMER}"
NOTED = f"I will remember that. {DISCLAIMER}"
NOT_DONE = f"I have not remembered that. {DISCLAIMER}"
SMALL_TALK_ANSWER = (
    "Hello! Tell me what I should remember, or ask me about what you have told me. " + DISCLAIMER
)
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

# Words without a meaning of their own in a question, besides the stop words of recall.
_QUESTION_LEXEMES: Final = frozenset(lexemes("could know mine please remember say tell us would"))

# A longer message is not small talk.
MAX_SMALL_TALK_CHARACTERS: Final = 80
# Messages that only greet, thank or say goodbye have nothing but such phrases.
_PHRASES: Final = (
    r"hello|hi|hey|there|good (?:morning|afternoon|evening|night)|how are you|thanks|thank you|and"
    r"|a lot|so much|very much|bye|goodbye|see you|later|soon|tomorrow|hallo|gr[uü]ß gott"
    r"|guten (?:morgen|tag|abend)|danke|vielen dank|tschüss|auf wiedersehen|bonjour|bonsoir|salut"
    r"|merci|beaucoup|au revoir|hola|buenos d[ií]as|buenas tardes|muchas gracias|gracias|adi[oó]s"
    r"|hasta (?:luego|mañana)"
)
_SMALL_TALK: Final = re.compile(rf"\W*(?:(?:{_PHRASES})\W+)*(?:{_PHRASES})\W*", re.I)


def is_small_talk(text: str) -> bool:
    """Return whether a message only greets, thanks or says goodbye."""
    is_short = len(text) <= MAX_SMALL_TALK_CHARACTERS
    return is_short and _SMALL_TALK.fullmatch(unicodedata.normalize("NFC", text)) is not None


@dataclass(frozen=True)
class BuiltInResponder:
    """Answers without a language model, by quoting."""

    @traces.span("model")
    def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Quote lines that match the last user message, or call the tool that remembers a fact.

        `on_text` is not called.
        """
        last = request.messages[-1]
        if last["role"] == "tool":
            result = last["content"]
            was_done = result.startswith(("Remembered", "This was known"))
            return Completion(f"{result} {DISCLAIMER}" if was_done else NOT_DONE)
        offered = request.tools if request.accepts_calls else ()
        requested = requested_tool_call(request.messages, offered)
        if requested is not None:
            return Completion("", (requested,))
        return Completion(respond(request.messages))


def respond(messages: Sequence[Mapping[str, Any]]) -> str:
    """Answer the last user message from the recalled lines and the user's turns in the window."""
    question = next((_text_of(m) for m in reversed(messages) if m["role"] == "user"), "")
    if is_small_talk(question):
        return SMALL_TALK_ANSWER
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
            and not is_question(text)
        ):
            scored.append((shared, position, text))
    return [text for _, _, text in sorted(scored, reverse=True)]


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message without the date that prompts have before turns."""
    return without_date_prefixes(message["content"])


def _lexemes(text: str) -> set[str]:
    return set(lexemes(text)) - _QUESTION_LEXEMES
