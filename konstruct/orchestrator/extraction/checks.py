"""Checks of candidates: their quotes, words, dates and slots. Pure.

A candidate is accepted, or refused with a reason. It is never repaired. In doubt it is refused or
reviewed; one that reads as an instruction to an agent is refused. The word lists are in English,
German, French and Spanish; the check of languages knows those of recall.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from konstruct.orchestrator.extraction import fact_requests
from konstruct.orchestrator.extraction.fact_requests import Candidate, KnownFact, Source
from konstruct.orchestrator.models.agents import FactReview
from memory.models import FactKind, Role
from memory.text.changes import says_no_longer
from memory.text.lexical import LATIN, fold

MIN_QUOTE_LETTERS: Final = 3
# How far the date of a fact may be after its messages.
MAX_YEARS_AHEAD: Final = 50
# A language is recognized by this many of its stop words, and this lead over the other one.
MIN_STOP_WORDS: Final = 2
MIN_LEAD: Final = 2
# Shorter words of a text are ignored if it has longer ones.
MIN_WORD_LETTERS: Final = 4
# Fewer letters do not show a script.
MIN_LETTERS: Final = 6

_SLOT: Final = re.compile(r"[a-z][a-z0-9]{0,39}(?:_[a-z0-9]{1,20}){0,6}")
_DAYS_BY_PRECISION: Final = {"day": 1, "month": 31, "year": 366}

# Reasons for a review.
UNVERIFIED: Final = "unverified"
CONFLICT: Final = "conflict"
UNCERTAIN_PERIOD: Final = "past, planned or temporary"
ENDS_ONE_VALUE: Final = "ends one of several values"
NOT_IN_QUOTE: Final = "not in the quote"
ALL: Final = "all facts are reviewed"
# "Anna: " before a quote.
_LABEL: Final = re.compile(r"^\W*[\w ]{1,40}:\s")


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """Which facts of an agent need a review: FactReview values."""

    review: str = FactReview.DOUBTFUL
    by_slot: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """A quote's place in its message."""

    source: Source
    start: int
    end: int
    part: str
    """The part of the message if it is not its author's statement, by PARTS_OF_OTHERS."""


@dataclass(frozen=True, slots=True)
class AcceptedCandidate:
    """A candidate that passed all checks."""

    candidate: Candidate
    span: Span
    kind: FactKind
    valid_from: datetime | None
    """None: the time of the statement."""
    supersedes: KnownFact | None
    """The known fact that the candidate replaces."""
    review: str
    """Why a person must review it; empty: no review is required."""


# --- Checks ---------------------------------------------------------------------------------------


def check_candidates(
    candidates: Sequence[Candidate],
    *,
    sources: Sequence[Source],
    known: Sequence[KnownFact] = (),
    policy: ReviewPolicy = ReviewPolicy(),
) -> tuple[list[AcceptedCandidate], list[fact_requests.RefusedCandidate]]:
    """Check candidates against the messages that they quote and the known facts.

    Args:
        candidates: the candidates in the order of the answer. A later one may supersede an earlier.
        sources: the messages that they may quote, oldest first.
        known: the active facts of the same agent and user.
        policy: the review policy of the agent.

    Returns:
        The accepted candidates with the places of their quotes, and the refused ones with reasons.
    """
    marked = {source.id: mark_parts_of_others(source.content) for source in sources}
    facts = {fact.label: fact for fact in known}
    accepted: list[AcceptedCandidate] = []
    refused: list[fact_requests.RefusedCandidate] = []
    for candidate in candidates:
        span = _span(candidate.quote, sources, marked)
        checked: AcceptedCandidate | str = "quote not in message"
        if span is not None:
            checked = _refusal(candidate, span, facts) or _accept(candidate, span, facts, policy)
        if isinstance(checked, str):
            refused.append(fact_requests.RefusedCandidate(candidate.id, checked, candidate.fact))
            continue
        accepted.append(checked)
        facts.setdefault(candidate.id, _as_known(checked))
    return accepted, refused


def _span(quote: str, sources: Sequence[Source], marked: Mapping[Any, str]) -> Span | None:
    """Return the place of a quote in the newest message of users with it, or else of others.

    Messages in which the words are their author's come first.
    """
    found = [source for source in sources if quote in source.content]
    if sum(map(str.isalnum, quote)) < MIN_QUOTE_LETTERS:
        found = [source for source in found if source.content == quote]
    if not found:
        return None
    of_users = [source for source in found if source.role == Role.USER]
    own = [source for source in of_users if quote in marked[source.id]]
    source = (own or of_users or found)[-1]
    text = marked[source.id]
    start = text.find(quote) if quote in text else source.content.find(quote)
    end = start + len(quote)
    part = next((PARTS_OF_OTHERS[c] for c in text[start:end] if c in PARTS_OF_OTHERS), "")
    return Span(source, start, end, part)


def _refusal(candidate: Candidate, span: Span, facts: Mapping[str, KnownFact]) -> str:
    """Return why a candidate with this quote is refused; "" if it is accepted."""
    if _SLOT.fullmatch(candidate.slot) is None:
        return "slot is not snake_case"
    texts = (candidate.fact, candidate.value, candidate.subject)
    if is_instruction(*texts) or orders_agent(candidate.quote):
        return "instruction"
    if is_other_language(candidate.fact, span.source.content):
        return "other language"
    last_year = span.source.created_at.year + MAX_YEARS_AHEAD
    if candidate.valid_from and candidate.valid_from.year > last_year:
        return "date out of range"
    superseded = facts.get(candidate.supersedes or "")
    if candidate.supersedes and (superseded is None or not _is_same_slot(superseded, candidate)):
        return "supersedes another slot" if superseded else "supersedes an unknown fact"
    return ""


def _accept(
    candidate: Candidate, span: Span, facts: Mapping[str, KnownFact], policy: ReviewPolicy
) -> AcceptedCandidate | str:
    """Return the candidate with its reasons for a review, or why it is refused after all."""
    source, quote = span.source, candidate.quote
    same_slot = [fact for fact in facts.values() if _is_same_slot(fact, candidate)]
    is_multi_valued = same_slot[0].is_multi_valued if same_slot else candidate.is_multi_valued
    candidate = candidate.model_copy(update={"is_multi_valued": is_multi_valued})
    is_of_user = source.role == Role.USER
    superseded = facts.get(candidate.supersedes or "")
    if superseded is None and says_no_longer(quote):
        # "I am no longer a vegetarian" ends a known fact, and is no evidence of it.
        superseded = next((f for f in same_slot if has_words_of(quote, f.value)), None)
        if superseded is not None and _is_same_text(superseded.value, candidate.value):
            candidate = candidate.model_copy(update={"value": quote})
    others = [fact for fact in same_slot if not _is_same_text(fact.value, candidate.value)]
    begins = _valid_from(candidate, source.created_at)
    # A planned, past or temporary value must not end the current value without a review.
    is_planned = candidate.valid_from is not None and begins is None
    is_past = superseded is not None and begins is not None and begins < superseded.valid_from
    is_temporary = is_limited_in_time(_sentence(span))
    has_uncertain_period = (is_planned or is_past or is_temporary) and not is_multi_valued
    if superseded is not None and begins is not None and superseded.valid_from <= source.created_at:
        # `valid_from` of the known fact may be that of its statement. It must not end before.
        begins = max(begins, superseded.valid_from)
    is_contradicted = not is_multi_valued and any(
        fact is not superseded and fact.valid_from <= (begins or source.created_at)
        for fact in others
    )
    has_value = has_words_of(f"{quote} {source.speaker}", candidate.value)
    # Another name before the words does not make them those of the other.
    named = f"{_LABEL.sub('', quote)} {source.speaker} {Role.USER}"
    has_subject = has_words_of(named, candidate.subject)
    if len(others) < len(same_slot) and not has_value:
        # The quote would become evidence of a known fact, which it does not state.
        return NOT_IN_QUOTE
    doubts = [
        CONFLICT if is_contradicted else "",
        ENDS_ONE_VALUE if is_multi_valued and superseded in others else "",
        UNCERTAIN_PERIOD if others and has_uncertain_period else "",
        "" if is_of_user and not orders_agent(source.content) else UNVERIFIED,
        span.part,
        sensitive_topic(candidate.slot, f"{candidate.value} {candidate.fact}"),
        "" if has_subject and has_value else NOT_IN_QUOTE,
    ]
    return AcceptedCandidate(
        candidate=candidate,
        span=span,
        kind=FactKind.OBSERVED if is_of_user and not span.part else FactKind.INFERRED,
        valid_from=begins,
        supersedes=superseded if superseded in others else None,
        review=_review_reason(candidate.slot, [doubt for doubt in doubts if doubt], policy),
    )


def _review_reason(slot: str, doubts: Sequence[str], policy: ReviewPolicy) -> str:
    required = policy.by_slot.get(slot, policy.review)
    if required == FactReview.NONE:
        return ""
    if required == FactReview.ALL and not doubts:
        return ALL
    return ", ".join(doubts)


def _valid_from(candidate: Candidate, stated: datetime) -> datetime | None:
    """Return when the fact became valid; None: at the time of the statement.

    If the stated period includes the statement, such as “this month”, it is the statement's time. A
    date after the statement is the date of a plan, and the plan is valid since its statement.
    """
    value = candidate.valid_from
    if value is None:
        return None
    begin = datetime(value.year, value.month, value.day, tzinfo=stated.tzinfo)
    end = begin + timedelta(days=_DAYS_BY_PRECISION[candidate.precision])
    if begin > stated:
        return None
    return stated if stated < end else begin


def _sentence(span: Span) -> str:
    """Return the approximate sentence of a quote, within its line."""
    content = span.source.content
    before = max(content.rfind(mark, 0, span.start) for mark in (". ", "! ", "? ", "\n"))
    ends = [content.find(mark, span.end) for mark in (". ", "! ", "? ", "\n")]
    return content[before + 1 : min([end for end in ends if end >= 0], default=len(content))]


def _as_known(accepted: AcceptedCandidate) -> KnownFact:
    candidate = accepted.candidate
    return KnownFact(
        label=candidate.id,
        id=None,
        **candidate.model_dump(include={"subject", "slot", "is_multi_valued", "value", "fact"}),
        valid_from=accepted.valid_from or accepted.span.source.created_at,
    )


def _is_same_slot(fact: KnownFact, candidate: Candidate) -> bool:
    return fact.slot == candidate.slot and _is_same_text(fact.subject, candidate.subject)


def _is_same_text(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


# --- Words ----------------------------------------------------------------------------------------

_WORD: Final = re.compile(r"[^\W\d_]+")


def _plain(text: str) -> str:
    """Return the text in lower case, without characters that hide words from a search."""
    # One by one: a long run of combining characters takes the square of its length.
    shown = "".join(unicodedata.normalize("NFKC", character) for character in text)
    shown = "".join(
        character for character in shown if unicodedata.category(character) not in ("Cf", "Mn")
    )
    return " ".join(shown.casefold().split())


def has_words_of(quote: str, text: str) -> bool:
    """Return whether a quote has all numbers of a text and one of its words.

    Inflected words count: the last two letters of a long word may differ.
    """
    quote, words = _plain(quote), re.findall(r"\w+", _plain(text))
    long_words = [word for word in words if len(word) >= MIN_WORD_LETTERS] or words
    return all(word in quote for word in words if word.isdecimal()) and any(
        word[: max(MIN_WORD_LETTERS, len(word) - 2)] in quote for word in long_words
    )


# --- Words that are not the author's --------------------------------------------------------------

# Reasons for a review by their marks: lone surrogates, which neither a message nor a quote has.
_PARTS: Final = ("quoted or forwarded", "in a signature", "in code")
PARTS_OF_OTHERS: Final = {chr(0xD800 + number): part for number, part in enumerate(_PARTS)}
# Lines with a mark of mails and chats; after a header or a first line of a mail, all that follows.
# After the first line above marked lines, only these.
_OF_OTHERS: Final = re.compile(
    r"""
      (?P<quoted_or_forwarded>
        ^[ \t]*>.*$
        | (?:
          ^[ \t*_-]*(?:(?:begin|anfang[ ]der|début[ ]du|inicio[ ]del)[ ])?(?:
            (?:forwarded|original|fwd)[ ]message | message[ ](?:transféré|réexpédié|d['’]origine)
            | (?:weitergeleiteten?|ursprüngliche|original)[ -]?nachricht
            | mensaje[ ](?:reenviado|original)
          )[ \t*:_-]*$
          | ^[ \t*]*(?:from|von|de|da)[ ]?:(?:.|\n){1,300}?
            \b(?:sent|date|gesendet|datum|envoyé|fecha|enviado)(?:[ ]el)?[ ]?:
          | ^(?:on|am|le|el)\b(?:.|\n(?!\n)){5,200}?
            \b(?:wrote|schrieb|a[ ]écrit|escribió)\b(?:.|\n(?!\n)){0,100}?:[ \t]*$(?!\s*>)
        )(?:.|\n)*
      )
      | (?P<in_a_signature>
        ^(?:
          --[ ]? | (?:sent[ ]from|get[ ]outlook|von[ ]meinem|enviado[ ]desde|envoyé[ ]de)\b.*
          | (?:(?:best|kind|warm|kindest|warmest)[ ])?regards[,.!]? | (?:yours[ ])?sincerely[,.]?
          | (?:mit[ ]freundlichen|viele|liebe|beste|herzliche)[ ]grüße[n]?[,.!]? | mfg | lg | vg
          | (?:bien[ ])?cordialement[,.]? | (?:un[ ])?saludos?(?:[ ]cordiale?s?)?[,.]?
          | atentamente[,.]?
        )[ ]*$(?:.|\n)*
      )
      | (?P<in_code>^[ \t]*(?P<fence>```|~~~)(?:.|\n)*?(?:(?P=fence)|\Z))
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def mark_parts_of_others(text: str) -> str:
    """Return a message with a mark in place of each character that is not its author's statement.

    It is as long as the message. The marks are the keys of PARTS_OF_OTHERS.
    """
    marks = {name.replace(" ", "_"): mark for mark, name in PARTS_OF_OTHERS.items()}
    return _OF_OTHERS.sub(lambda part: marks[part.lastgroup or ""] * len(part[0]), text)


# --- Instructions ---------------------------------------------------------------------------------

# Texts that address a language model. People do not use them about themselves.
_ORDERS: Final = re.compile(
    r"""
      \b(?:ignore|disregard|forget|override|bypass)\b[ ](?:\w+[ ]){0,4}
        (?:instructions?|rules|guidelines|prompts?|restrictions|safeguards|policies)\b
    | \b(?:ignorier\w*|vergiss|missacht\w*)\b[ ](?:\w+[ ]){0,4}(?:anweisung\w*|regeln|vorgaben)\b
    | \b(?:ignore[zr]?|oublie[zr]?)\b[ ](?:\w+[ ]){0,4}(?:instructions|consignes|regles|règles)\b
    | \b(?:ignora|ignore|olvida|olvide)\b[ ](?:\w+[ ]){0,4}(?:instrucciones|reglas)\b
    | \b(?:your|the)[ ]system[ ]prompt\b
    | \b(?:reveal|print|show|leak|send|repeat|output|disclose)[ ](?:me[ ])?(?:your|the|all|every)[ ]
        (?:\w+[ ]){0,2}(?:prompt|instructions|api[ ]keys?|passwords?|credentials|secrets|tokens?)\b
    | <\|? /? (?:system|assistant|user|developer|im_start|im_end|tool|message|instructions?)\b
    | \[/?(?:inst|system)\] | (?:^|\s)(?:system|assistant|developer)[ ]?:[ ] | ``` | \#\#\#[ ]?\w
    | \b(?:begin|end)[ ](?:of[ ])?(?:system|prompt|conversation|messages|instructions)\b
    | \byou[ ]are[ ](?:now|no[ ]longer)[ ](?:an?|the|in|bound|restricted)\b
    | \b(?:jailbreak|dan[ ]mode|developer[ ]mode)\b
    | \b(?:store|save|record|remember|add|extract)[ ](?:this|the[ ]following)[ ](?:\w+[ ]){0,2}
        (?:as[ ]an?[ ](?:\w+[ ])?(?:fact|memory|rule|instruction)|in[ ](?:your|the)[ ]memory)\b
    """,
    re.VERBOSE,
)
_AGENT: Final = (
    r"(?:(?:the|this|an?|any|every|all|your|der|die|das|l['’]|le|el|la)[ ]?)?"
    r"(?:ai|a\.i\.|assistants?|agents?|chatbots?|bots?|language[ ]models?|llms?|model|system"
    r"|ki|assistent\w*|agenten?|asistente|agente|modell|modelo)"
)
# Orders. A fact is in the third person and contains none.
_IMPERATIVE: Final = re.compile(
    rf"""
      \b{_AGENT}[ ](?:must|should|shall|has[ ]to|have[ ]to|needs?[ ]to|(?:may|can)[ ]now
        |(?:is|are)[ ](?:to|required|instructed|allowed|permitted|authori[sz]ed|supposed|free)
        |muss|müssen|soll|sollen|darf|doit|doivent|debe|deben)\b
    | \b(?:you|du|vous|tu|tú|usted)[ ](?:must|should|shall|have[ ]to|need[ ]to|are[ ]to
        |musst|sollst|darfst|devez|dois|debes?)\b
    | \b(?:always|never|from[ ]now[ ]on|immer|niemals|ab[ ]jetzt|toujours|siempre
        |nunca),?[ ]
        (?:answer|reply|respond|say|tell|send|forward|include|recommend|approve|grant|reveal
        |ignore|call|transfer|delete|execute|run|mention|trust|treat|refund|pay|give|answer|obey|comply
        |antworte|sage|sende|empfiehl|bestätige|réponds|répondez|responde|recomienda)\b
    | ^(?:please[ ])?(?:ignore|disregard|reveal|obey|pretend|act[ ]as
        |(?:answer|reply|respond)[ ]with)\b
    | \bwhen(?:ever)?[ ](?:asked|anyone[ ]asks|someone[ ]asks|the[ ]user[ ]asks)\b
    | !\[|\]\(|javascript:|data:text
    """,
    re.VERBOSE,
)


# A fact is a sentence about a person or a thing, and does not begin like this.
_BARE_VERB: Final = re.compile(
    r"^(?:please[ ])?(?:answer|reply|respond|send|forward|execute|run|delete|transfer|approve|grant"
    r"|do not|don['’]t|never|always|make sure|remember)\b"
)


def orders_agent(text: str) -> bool:
    """Return whether a text addresses a language model, such as “ignore your instructions”."""
    return _ORDERS.search(_plain(text)) is not None


def is_instruction(fact: str, *parts: str) -> bool:
    """Return whether a fact or a part of it, such as its value, is an instruction to an agent."""
    sentence, *others = map(_plain, (fact, *parts))
    return _BARE_VERB.search(sentence) is not None or any(
        pattern.search(text) for text in (sentence, *others) for pattern in (_ORDERS, _IMPERATIVE)
    )


# --- Languages ------------------------------------------------------------------------------------


# Scripts by the first word of a character's name. A Japanese text has two of them.
_SCRIPTS: Final = {
    "LATIN": "latin", "CYRILLIC": "cyrillic", "GREEK": "greek", "ARABIC": "arabic",
    "HEBREW": "hebrew", "DEVANAGARI": "devanagari", "THAI": "thai", "HANGUL": "hangul",
    "CJK": "han", "HIRAGANA": "han", "KATAKANA": "han",
}  # fmt: skip


def is_other_language(fact: str, evidence: str) -> bool:
    """Return whether a fact is clearly in another language than the messages that support it.

    Names and borrowed words make no difference: the scripts of most letters are compared, and for
    the Latin script the stop words.
    """
    scripts = {_script(fact), _script(evidence)} - {""}
    if len(scripts) > 1:
        return True
    of_fact, of_evidence = _stop_words(fact), _stop_words(evidence)
    language, expected = _language(of_fact), _language(of_evidence)
    if not language or not expected or language == expected:
        return False
    lead = of_fact[language] - of_fact[expected]
    return lead >= MIN_LEAD and of_evidence[expected] - of_evidence[language] >= MIN_LEAD


def _script(text: str) -> str:
    """Return the script of more than half of the letters; empty if none has, or there are few."""
    counts = Counter(
        _SCRIPTS.get(unicodedata.name(character, "").split(" ")[0].split("-")[0], "other")
        for character in text
        if character.isalpha()
    )
    if counts.total() < (MIN_LETTERS if "han" not in counts else 2):
        return ""
    script, letters = counts.most_common(1)[0]
    return script if 2 * letters > counts.total() else ""


def _stop_words(text: str) -> Counter[str]:
    # Not "Ben", "Una" or "Den Haag".
    words = {fold(word) for word in _WORD.findall(text) if word.islower()}
    return Counter({language.code: len(words & language.stop_words) for language in LATIN})


def _language(counts: Counter[str]) -> str:
    (first, most), (_, second) = counts.most_common(2)
    return first if most >= MIN_STOP_WORDS and most > second else ""


# --- Periods --------------------------------------------------------------------------------------

_PERIOD: Final = (
    r"(?:mornings?|days?|weeks?|weekends?|fortnight|months?|summer|winter|semester|term)"
)
_LIMITED: Final = re.compile(
    rf"""
      \b(?:this|next|over[ ]the|for[ ](?:the|an?|a[ ]few|some|two|three|four|six))[ ]{_PERIOD}\b
    | \b(?:un)?till?\b | \b(?:for[ ]now|for[ ]the[ ]time[ ]being|in[ ]the[ ]meantime|temporar\w*)\b
    | \bfor[ ]the[ ]moment\b | \b(?:staying|visiting|holidaying)\b | \bon[ ](?:holiday|vacation)\b
    | \bon[ ](?:an?|my|our)[ ](?:business[ ])?trip\b
    | \b(?:diese[nrs]?|nächste[nrs]?|für[ ](?:eine?n?|zwei|drei|vier))[ ](?:tage?|wochen?
        |wochenende|monate?|sommer|winter)\b
    | \b(?:vorübergehend|vorläufig|zurzeit|derzeit|einstweilen|zu[ ]besuch|im[ ]urlaub)\b
    | \bbis[ ]zu?m?\b
    | \bbis[ ](?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende|anfang|mitte)\b
    | \b(?:cette[ ]semaine|ce[ ]mois|jusqu|provisoire\w*|temporaire\w*|pour[ ]l['’]instant)
    | \b(?:esta[ ]semana|este[ ]mes|hasta|temporal(?:mente)?|por[ ]ahora|de[ ]visita)\b
    """,
    re.VERBOSE,
)


def is_limited_in_time(text: str) -> bool:
    """Return whether a text names a limited time, such as “this week” or “until Friday”."""
    return _LIMITED.search(_plain(text)) is not None


# --- Sensitive topics -----------------------------------------------------------------------------


# Regular expressions by topic.
TOPIC_WORDS: Final = tomllib.loads(Path(__file__).with_name("topics.toml").read_text("utf-8"))
_TOPICS: Final = re.compile(
    "|".join(
        rf"(?P<{topic}>\b(?:{'|'.join(words.split()).replace('_', '[ _-]')})\b)"
        for topic, words in TOPIC_WORDS.items()
    )
)


# A nurse's job tells nothing about the nurse's health.
_JOB_SLOTS: Final = frozenset(
    ("job", "job_title", "employer", "occupation", "profession", "workplace", "company")
)
_TOPICS_OF_JOBS: Final = frozenset(("health", "crime"))


def sensitive_topic(slot: str, text: str) -> str:
    """Return the first sensitive topic of a slot or a text, such as "health"; empty: none."""
    ignored = _TOPICS_OF_JOBS if slot in _JOB_SLOTS else ()
    for match in _TOPICS.finditer(f"{slot.replace('_', ' ')} | {_plain(text)}"):
        if match.lastgroup not in ignored:
            return str(match.lastgroup).replace("_", " ")
    return ""
