"""The features of a question: its words, the names in it, whether it asks for a time. Pure."""

from dataclasses import dataclass

import regex

from memory.text import lexical
from memory.text.chunking import count_words, split_sentences
from memory.text.english import ASKED_NUMBERS, I_WORDS, STOP_WORDS, WHEN, YOU_WORDS
from memory.text.questions import is_question

# Of a pasted page, the beginning and the end are used.
MAX_TERMS = 64

_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}'’]*")


def proper_names(text: str) -> list[str]:
    """Return the lexemes of words that look like names: capitalized, and not at the beginning of a
    sentence.
    """
    names = [
        lexical.lexemes(word)[:1]
        for sentence in split_sentences(text)
        for word in _WORD.findall(sentence)[1:]
        if word[0].isupper() and not word.isupper()
    ]
    return list(dict.fromkeys(name for found in names for name in found))


@dataclass(frozen=True, slots=True)
class Question:
    """An analysed query."""

    terms: list[int]
    """Hashes of its lexemes, each once, and those of the speaker that it asks for."""
    text_terms: list[int]
    """Those of them that are words."""
    names: list[int]
    """Hashes of its words that may be names of speakers."""
    names_user: bool
    """It speaks of the user: "I", "my"."""
    names_agent: bool
    """It speaks of the agent: "you", "your"."""
    asks_when: bool
    is_question: bool
    proper_names: list[int]
    """Hashes of its lexemes that are written as names are."""
    words: int

    @classmethod
    def of(cls, query: str) -> "Question":
        """Analyse a query, which may be any text."""
        words = lexical.words(query)
        lexemes = [lexeme for lexeme in lexical.stems(words) if lexeme not in ASKED_NUMBERS]
        lexemes = list(dict.fromkeys(lexemes))
        if len(lexemes) > MAX_TERMS:
            lexemes = lexemes[: MAX_TERMS // 2] + lexemes[-MAX_TERMS // 2 :]
        text_terms = [lexical.lexeme_hash(lexeme) for lexeme in lexemes]
        names_user = not I_WORDS.isdisjoint(words)
        names_agent = not YOU_WORDS.isdisjoint(words)
        spoken_by = [
            lexical.SPEAKER_TERMS[role]
            for role, named in (("user", names_user), ("assistant", names_agent))
            if named
        ]
        names = list(dict.fromkeys(word for word in words if word not in STOP_WORDS))
        return cls(
            terms=[*text_terms, *map(lexical.lexeme_hash, spoken_by)],
            text_terms=text_terms,
            names=[lexical.lexeme_hash(name) for name in names[:MAX_TERMS]],
            names_user=names_user,
            names_agent=names_agent,
            asks_when=bool(WHEN.search(query)),
            is_question=is_question(query),
            proper_names=[lexical.lexeme_hash(n) for n in proper_names(query)[:MAX_TERMS]],
            words=count_words(query),
        )
