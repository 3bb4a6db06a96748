"""Cuts a message into pieces to embed: its sentences, each with its subject.

A memory is found by its best piece: on LoCoMo the best cosine over "Subject: sentence" finds .576
of the evidence in ten hits, one vector for the whole turn .441. Short sentences share a piece: .60,
with a third fewer vectors. Pieces also fit into the model's limit of 256 word pieces. Pure: the
tokenizer is an argument.
"""

from collections.abc import Callable, Iterator

import regex

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
