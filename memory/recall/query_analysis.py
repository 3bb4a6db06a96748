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
    return list(dict.fromkeys(name for lexemes in names for name in lexemes))


@dataclass(frozen=True, slots=True)
class Question:
    """An analysed query."""

    terms: list[int]
    """Hashes of its lexemes, each once, and of SPEAKER_TERMS of the roles that it mentions."""
    text_terms: list[int]
    """The hashes of its words alone."""
    names: list[int]
    """Hashes of its words that may be names of speakers."""
    mentions_user: bool
    """It has a pronoun of the user, such as "I" or "my"."""
    mentions_agent: bool
    """It has a pronoun of the agent, such as "you" or "your"."""
    asks_when: bool
    is_question: bool
    proper_names: list[int]
    """Hashes of its lexemes that are capitalized like names."""
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
        mentions_user = not I_WORDS.isdisjoint(words)
        mentions_agent = not YOU_WORDS.isdisjoint(words)
        speaker_terms = [
            lexical.SPEAKER_TERMS[role]
            for role, is_mentioned in (("user", mentions_user), ("assistant", mentions_agent))
            if is_mentioned
        ]
        names = list(dict.fromkeys(word for word in words if word not in STOP_WORDS))
        return cls(
            terms=[*text_terms, *map(lexical.lexeme_hash, speaker_terms)],
            text_terms=text_terms,
            names=[lexical.lexeme_hash(name) for name in names[:MAX_TERMS]],
            mentions_user=mentions_user,
            mentions_agent=mentions_agent,
            asks_when=bool(WHEN.search(query)),
            is_question=is_question(query),
            proper_names=[lexical.lexeme_hash(n) for n in proper_names(query)[:MAX_TERMS]],
            words=count_words(query),
        )
