"""Whether a text is a question. Pure."""

import regex

from memory.text import lexical
from memory.text.chunking import MIN_WORDS, count_words, split_sentences
from memory.text.english import QUESTION_WORDS

_CLOSING = r"""["'”’»)\]」』）]*$"""
_ASKS = regex.compile(rf"(?:[?？؟⁇\u037e]|か[。｡]?){_CLOSING}")
_SAYS = regex.compile(rf"[.!…。！｡]{_CLOSING}")


def is_question(text: str) -> bool:
    """Whether the text asks something and says nothing: every sentence of it is a question."""
    sentences = [s for s in split_sentences(text) if count_words(s) >= MIN_WORDS]
    return all(_is_question(sentence) for sentence in sentences or [text.strip()])


def _is_question(sentence: str) -> bool:
    if _ASKS.search(sentence):
        return True
    return not _SAYS.search(sentence) and next(iter(lexical.words(sentence)), "") in QUESTION_WORDS
