"""Whether a text is a question, and whether it contains a statement too. Pure."""

import regex

from memory.text import english, lexical
from memory.text.chunking import MIN_WORDS, count_words, split_sentences

# "Can you please remember that": the words before a statement are among the first ones.
MAX_TELLING_WORDS = 6

_CLOSING = r"""["'”’»)\]」』）]*$"""
_QUESTION_END = regex.compile(rf"(?:[?？؟⁇\u037e]|か[。｡]?){_CLOSING}")
_STATEMENT_END = regex.compile(rf"[.!…。！｡]{_CLOSING}")


def is_question(text: str) -> bool:
    """Return whether every sentence of the text has the form of a question."""
    return all(map(_is_question, _sentences(text)))


def only_asks(text: str) -> bool:
    """Return whether the text is a question that contains no statement.

    These contain one: "I live in Bern, remember?", "Can you remember that I live in Bern?", "Do not
    forget: I live in Bern" and "When I was five I lived in Bern". English only: in any other
    language, every question only asks.
    """
    return all(
        _is_question(sentence) and not _has_statement(sentence) for sentence in _sentences(text)
    )


def _sentences(text: str) -> list[str]:
    sentences = [s for s in split_sentences(text) if count_words(s) >= MIN_WORDS]
    return sentences or [text.strip()]


def _is_question(sentence: str) -> bool:
    if _QUESTION_END.search(sentence):
        return True
    return (
        not _STATEMENT_END.search(sentence)
        and next(iter(lexical.words(sentence)), "") in english.QUESTION_WORDS
    )


def _has_statement(sentence: str) -> bool:
    """Return whether a sentence with the form of a question contains a statement."""
    # Except the colon of a time of day, and that of "Quick question: where do I live?"
    after_colon = sentence.partition(": ")[2].strip()
    if after_colon and not _is_question(after_colon):
        return True
    words = lexical.words(sentence)
    opening = words[0] if words else ""
    if _QUESTION_END.search(sentence):
        statement, _, tag = sentence.rpartition(",")
        if count_words(statement) >= MIN_WORDS and opening not in english.QUESTION_WORDS:
            return " ".join(lexical.words(tag)) in english.TAGS
    elif opening in english.WH_WORDS:
        # A question has its verb before its subject.
        if words[1:2] and words[1] in english.SUBJECT_WORDS:
            return True
    elif words[1:2] and words[1] in english.AFTER_NO_SUBJECT:
        return True
    return _introduces_statement(words)


def _introduces_statement(words: list[str]) -> bool:
    """Return whether the words ask to remember the following statement: "can you remember that
    ...".
    """
    if not {"i", "you"}.intersection(words[1:3]):
        return False
    head = words[:MAX_TELLING_WORDS]
    if head[0] in english.REQUESTING_WORDS and not english.NOTING_WORDS.isdisjoint(head):
        return True
    return any(
        word in english.TELLING_WORDS and "that" in words[position + 1 : position + 3]
        for position, word in enumerate(head)
    )
