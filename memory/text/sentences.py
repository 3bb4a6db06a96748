"""Sentences: the pieces of a message to embed, and whether a text is a question.

A memory is found by its best piece: on LoCoMo the best cosine over "Subject: sentence" finds .576
of the evidence in ten hits, one vector for the whole turn .441. Short sentences share a piece: .60,
with a third fewer vectors. Pieces also fit into the model's limit of 256 word pieces. Pure: the
tokenizer is an argument.
"""

from collections.abc import Callable, Iterator

import regex

from memory.text import lexical

# A sentence of one or two words ("Sure!", "Me too.") has no searchable content.
MIN_WORDS = 3
# A piece takes sentences until it has this many words. From 7 to 9 recall is the same on every
# dialogue; at 5 and at 12 vectors alone find less.
MIN_PIECE_WORDS = 8
# Longer names are cut, so that the text has room.
MAX_SUBJECT = 80
# What the embedding model takes.
MAX_PIECE_TOKENS = 256

# A mark that ends a sentence, with closing quotes and brackets. The full-width marks of Chinese and
# Japanese need no space after them; "." does, otherwise "3.5" and "a.com" would be cut.
_SENTENCE_END = regex.compile(
    r"""
      (?<![.!?…؟۔।॥։፧።]) (?P<mark>[.!?…؟۔।॥։፧።]++) ["'”’»)\]]*+ (?=\s)
    | [。！？｡]++ [」』”’）]*+
    | [\n\r\u2028\u2029]++
    """,
    regex.VERBOSE,
)
# "Dr.", "e.g." and the initials of names do not end a sentence.
_ABBREVIATION = regex.compile(
    r"(?:^|[\s(])(?:(?:\p{L}\.)+\p{L}|mr|mrs|ms|dr|prof|sr|jr|st|vs|approx|fig|sept?|bzw|ca|nr)\.$",
    regex.IGNORECASE,
)
_INITIAL = regex.compile(r"(?:^|[\s(])(?!I\.$)\p{L}\.$")
# Scripts without spaces between words: about two characters are a word.
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*")


def count_words(text: str) -> int:
    """Return the number of words of `text`, in any script."""
    if text.isascii():
        return len(_WORD.findall(text))
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + (unspaced + 1) // 2


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text`, stripped, in order; a line break ends one too."""
    return [sentence for sentence, _, _ in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[str, int, int]]:
    """Return the sentences of `text`, each with its start and end, including the space around
    it.
    """
    ends: list[int] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        # Only the tail can be an abbreviation; a limited slice keeps long texts linear.
        tail = text[max(start, end.end() - 16) : end.end()]
        if end["mark"] == "." and (_INITIAL.search(tail) or _ABBREVIATION.search(tail)):
            continue
        start = end.end()
        ends.append(start)
    spans = zip([0, *ends], [*ends, len(text)], strict=True)
    return [(sentence, start, end) for start, end in spans if (sentence := text[start:end].strip())]


def cut_pieces(
    text: str, subject: str, *, count_tokens: Callable[[str], int], max_tokens: int
) -> list[str]:
    """Return the texts to embed for one message: "Subject: sentence", at most `max_tokens` tokens
    each.

    Sentences of one or two words are left out beside a longer one; a message with only such
    sentences is one piece, so every message with text has at least one piece.
    """
    text = text.replace("\x00", " ").strip()
    if not text:
        return []
    sentences = [s for s in split_sentences(text) if count_words(s) >= MIN_WORDS]
    prefix = f"{subject[:MAX_SUBJECT]}: " if subject else ""

    def fits(part: str) -> bool:
        # A word piece has at least one character: short texts need no tokenizer.
        return len(prefix) + len(part) <= max_tokens or count_tokens(prefix + part) <= max_tokens

    pieces = [
        prefix + part for joined in _join(sentences or [text]) for part in _parts(joined, fits)
    ]
    return list(dict.fromkeys(pieces))


def estimated_pieces(text: str, subject: str = "") -> int:
    """Return about how many pieces a message has, and rarely fewer: each character is a token."""
    return len(cut_pieces(text, subject, count_tokens=len, max_tokens=MAX_PIECE_TOKENS))


def _join(sentences: list[str]) -> list[str]:
    """Join short sentences with the next one, or the last ones with the one before."""
    joined: list[str] = []
    group: list[str] = []
    for sentence in sentences:
        group.append(sentence)
        if count_words(" ".join(group)) >= MIN_PIECE_WORDS:
            joined.append(" ".join(group))
            group = []
    if group:
        joined.append(" ".join([joined.pop(), *group] if joined else group))
    return joined


def _parts(sentence: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield `sentence`, or its halves (cut at a space if there is one) until each fits."""
    if len(sentence) <= 1 or fits(sentence):
        yield sentence
        return
    middle = len(sentence) // 2
    space = sentence.rfind(" ", 0, middle + 1)
    cut = space if space > middle // 2 else middle
    for half in (sentence[:cut].strip(), sentence[cut:].strip()):
        if half:
            yield from _parts(half, fits)


# --- Questions -----------------------------------------------------------------------------------

# Beginnings of questions that are not answered by yes or no. In "When I was five I lived in Bern"
# the subject follows, in a question the verb.
WH_WORDS = lexical.word_set("who whom whose what which when where why how")
SUBJECT_WORDS = lexical.word_set("i we you he she it they my our your his her their")
# "Do not forget" and "do remember" are no questions.
AFTER_NO_SUBJECT = lexical.word_set("not never remember note keep forget")
# "I live in Bern, remember?" Tokenized: "don't" is two words.
TAGS = frozenset(
    (
        "ok", "okay", "right", "remember", "correct", "yes", "no", "yeah", "you know",
        "did you know", "do you remember", "remember that", "is that ok", "got it", "understood",
        "will you", "would you", "can you", "could you", "please",
        *(
            f"{verb}{negation} {subject}"
            for verb in ("is", "are", "was", "were", "do", "does", "did", "has", "have")
            for negation in ("", " not", "n t")
            for subject in ("i", "you", "he", "she", "it", "we", "they")
        ),
    )
)  # fmt: skip
# A statement follows "Can you note ..." and "Did I tell you that ...".
REQUESTING_WORDS = lexical.word_set("can could will would")
NOTING_WORDS = lexical.word_set("note save store")
TELLING_WORDS = lexical.word_set(
    "remember forget mind know knew tell told say said mention mentioned see hear"
)
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
        and next(iter(lexical.words(sentence)), "") in lexical.QUESTION_WORDS
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
        if count_words(statement) >= MIN_WORDS and opening not in lexical.QUESTION_WORDS:
            return " ".join(lexical.words(tag)) in TAGS
    elif opening in WH_WORDS:
        # A question has its verb before its subject.
        if words[1:2] and words[1] in SUBJECT_WORDS:
            return True
    elif words[1:2] and words[1] in AFTER_NO_SUBJECT:
        return True
    return _introduces_statement(words)


def _introduces_statement(words: list[str]) -> bool:
    """Return whether the words ask to remember the following statement: "can you remember that
    ...".
    """
    if not {"i", "you"}.intersection(words[1:3]):
        return False
    head = words[:MAX_TELLING_WORDS]
    if head[0] in REQUESTING_WORDS and not NOTING_WORDS.isdisjoint(head):
        return True
    return any(
        word in TELLING_WORDS and "that" in words[position + 1 : position + 3]
        for position, word in enumerate(head)
    )
