"""Facts without a language model: plain statements of users about themselves. Pure.

Precision is preferred to recall. A statement must be in the present tense, and a complete clause. A
sentence that may be a question, a hypothesis or a quotation is ignored, and so is a message that
may be a joke or a text to edit. docs/measurements.md has the precision.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

import regex

from konstruct.orchestrator.extraction.candidates import Candidate, Evidence
from konstruct.orchestrator.extraction.rule_patterns import (
    CLAUSE,
    DOUBT,
    FIRST_PERSON,
    FOLLOWING_QUESTION,
    GREETING,
    INTRODUCES_TEXT,
    LEAD,
    LIST,
    MARKUP,
    MENTIONS_SELF,
    MULTI_VALUED,
    NAMED_RELATIVE,
    NOT_A_LIKING,
    NOT_A_NAME,
    NOT_A_STATEMENT,
    NOT_AN_ALLERGEN,
    NOT_AN_OBJECT,
    OPEN_QUOTE,
    ORDINAL,
    ORDINAL_POINT,
    QUESTION,
    QUOTATION,
    RELATIONS,
    REPORTED,
    RULES,
    SENTENCES,
    SPEAKER_PLACEHOLDER,
)
from memory.models import FactKind, Role
from memory.text.chunking import split_sentences

REVIEW_REASON: Final = "found by a rule"
# Longer messages are mostly pasted texts, such as a letter of another person.
MAX_CHARACTERS: Final = 2_000
MAX_EVIDENCE: Final = 3


class Source(Protocol):
    """The fields of a message that the rules read."""

    @property
    def label(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def content(self) -> str: ...


def candidates(messages: Iterable[Source]) -> list[Candidate]:
    """Find plain statements of users about themselves, in English, German and Spanish.

    Every candidate must be reviewed, with `REVIEW_REASON` as the reason.

    Args:
        messages: of one conversation, in their order. Those of the agent are ignored.

    Returns:
        One candidate for each value of a slot, with up to MAX_EVIDENCE quotes: clauses of the
        messages, verbatim.
    """
    found: dict[tuple[str, str, str], Candidate] = {}
    for message in messages:
        if message.role != Role.USER:
            continue
        for statement in _statements(message.content):
            key = (message.speaker, statement.slot, statement.value.casefold())
            sentence = statement.sentence.replace(SPEAKER_PLACEHOLDER, message.speaker)
            quote = Evidence(message.label, message.content[statement.start : statement.end])
            existing = found.get(key)
            if existing is None:
                found[key] = Candidate(
                    id=f"r{len(found) + 1}",
                    subject=message.speaker,
                    slot=statement.slot,
                    is_multi_valued=statement.slot in MULTI_VALUED,
                    value=statement.value,
                    fact=sentence[:1].upper() + sentence[1:],
                    kind=FactKind.OBSERVED,
                    speaker=message.speaker,
                    evidence=(quote,),
                )
            elif len(existing.evidence) < MAX_EVIDENCE and quote not in existing.evidence:
                found[key] = replace(existing, evidence=(*existing.evidence, quote))
    return list(found.values())


# --- Reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Statement:
    slot: str
    value: str
    sentence: str
    start: int
    end: int


def _statements(text: str) -> Iterator[_Statement]:
    """Find the statements of a message, with their places in it."""
    if len(text) > MAX_CHARACTERS:
        return
    masked = QUOTATION.sub(lambda found: "_" * len(found[0]), ORDINAL.sub(ORDINAL_POINT, text))
    if NOT_A_STATEMENT.search(masked) or OPEN_QUOTE.search(masked):
        return
    position = 0
    for sentence in split_sentences(masked):
        position = masked.index(sentence, position)
        for found, language in _matches(sentence, masked[:position].strip()):
            for statement in _read(found, language):
                start, end = position + found.start(), position + found.end()
                yield replace(statement, start=start, end=end)
        if INTRODUCES_TEXT.search(sentence) and not MENTIONS_SELF.search(sentence):
            return
        position += len(sentence)


def _matches(sentence: str, before: str) -> Iterator[tuple[regex.Match[str], str]]:
    """Match the rules where a clause begins, and names of relatives anywhere."""
    if MARKUP.search(sentence):
        return
    lead = LEAD.match(sentence)
    begin = lead.end() if lead else 0
    starts = [begin]
    if FIRST_PERSON.match(sentence, begin):
        starts += [clause.end() for clause in CLAUSE.finditer(sentence, begin)]
    is_greeted = GREETING.fullmatch(f"{before} {sentence[:begin]}".strip())
    for start in starts:
        for language, rules in RULES.items():
            match = rules.match(sentence, start)
            if match and match.groupdict().get("introduced") and not is_greeted:
                continue
            if match and _is_plain(sentence, match):
                yield match, language
    if not REPORTED.search(sentence):
        for match in NAMED_RELATIVE.finditer(sentence):
            yield match, "en"


def _is_plain(sentence: str, match: regex.Match[str]) -> bool:
    """Return whether the rest of the sentence raises no doubt about the statement."""
    is_asked_afterwards = FOLLOWING_QUESTION.match(sentence, match.end())
    after = "" if is_asked_afterwards else sentence[match.end() :]
    rest = f"{sentence[: match.start()]} {after}"
    return not any(pattern.search(rest) for pattern in (DOUBT, REPORTED, QUESTION))


def _read(match: regex.Match[str], language: str) -> Iterator[_Statement]:
    """Yield statements from the groups of a rule; one for each item of a list."""
    groups = {name: text for name, text in match.groupdict().items() if text}
    of = next((text for name, text in groups.items() if name.endswith("_of")), "")
    for group in sorted(groups, key=match.start):
        if group.endswith("_of"):
            continue
        text = groups[group].replace(ORDINAL_POINT, ".").removesuffix("'s").removesuffix("’s")
        name = "name" if group == "introduced" else group
        values = LIST.split(text) if name == "allergy" else [text]
        if not all(_is_value(name, value) for value in values):
            continue
        slot = {"relative": RELATIONS.get(of.lower(), of.lower()), "favorite": f"favorite_{of}"}
        for value in values:
            sentence = SENTENCES[language][name]
            yield _Statement(
                slot.get(name, name).replace(" ", "_"),
                value,
                sentence.format(SPEAKER_PLACEHOLDER, value=value, of=of),
                0,
                0,
            )


def _is_value(name: str, value: str) -> bool:
    words = value.casefold().replace(",", "").split()
    if name == "likes":
        return words[0] not in NOT_A_LIKING and words[-1] not in NOT_AN_OBJECT
    if name == "allergy":
        return words[0] not in NOT_AN_ALLERGEN
    if name == "favorite":
        return words[0] not in NOT_AN_OBJECT
    return value.casefold() not in NOT_A_NAME
