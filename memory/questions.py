"""What a question gives recall to go by: its words, whom it names, whether it asks when. Pure."""

from dataclasses import dataclass

from memory import lexical
from memory.english import I_WORDS, STOP_WORDS, WHEN, YOU_WORDS

# Of a pasted page, its beginning and its end are the question.
MAX_TERMS = 64


@dataclass(frozen=True, slots=True)
class Question:
    """A query, taken apart."""

    terms: list[int]
    """Hashes of its lexemes, each once."""
    names: list[int]
    """Hashes of its words that may be names of speakers."""
    names_user: bool
    """It speaks of the user: "I", "my"."""
    names_agent: bool
    """It speaks of the agent: "you", "your"."""
    asks_when: bool

    @classmethod
    def of(cls, query: str) -> "Question":
        """Take a query apart; any text will do."""
        words = lexical.words(query)
        lexemes = list(dict.fromkeys(lexical.lexemes(query)))
        if len(lexemes) > MAX_TERMS:
            lexemes = lexemes[: MAX_TERMS // 2] + lexemes[-MAX_TERMS // 2 :]
        names_user = not I_WORDS.isdisjoint(words)
        names_agent = not YOU_WORDS.isdisjoint(words)
        if names_user:
            lexemes.append(lexical.SPOKEN_BY["user"])
        if names_agent:
            lexemes.append(lexical.SPOKEN_BY["assistant"])
        names = list(dict.fromkeys(word for word in words if word not in STOP_WORDS))
        return cls(
            terms=[lexical.lexeme_hash(lexeme) for lexeme in lexemes],
            names=[lexical.lexeme_hash(name) for name in names[:MAX_TERMS]],
            names_user=names_user,
            names_agent=names_agent,
            asks_when=bool(WHEN.search(query)),
        )
