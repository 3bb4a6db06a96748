"""Candidates: the facts that a language model proposes. They are parsed and checked. Pure.

A candidate is accepted, or refused with a reason. It is never repaired. A candidate that reads as
an instruction to an agent is refused.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
)

from konstruct.orchestrator.extraction.wording import (
    PARTS_OF_OTHERS,
    has_words_of,
    is_instruction,
    is_limited_in_time,
    is_other_language,
    mark_parts_of_others,
    orders_agent,
    sensitive_topic,
)
from konstruct.orchestrator.models.agents import FactReview
from konstruct.strict_json import NotStrictJSON, read_json
from memory.models import FactKind, Precision, Role

MAX_CANDIDATES: Final = 200
MAX_EVIDENCE: Final = 5
MAX_ID_CHARACTERS: Final = 40
MAX_NAME_CHARACTERS: Final = 100
MAX_VALUE_CHARACTERS: Final = 300
MAX_FACT_CHARACTERS: Final = 500
MAX_QUOTE_CHARACTERS: Final = 1_000
MIN_QUOTE_LETTERS: Final = 3
MIN_CONFIDENCE: Final = 0.6
# The maximum number of positions at which a JSON object is searched for in an answer.
MAX_OBJECT_STARTS: Final = 20
# How far the date of a fact may be after its messages.
MAX_YEARS_AHEAD: Final = 50

_SLOT: Final = re.compile(r"[a-z][a-z0-9]{0,39}(?:_[a-z0-9]{1,20}){0,6}")
# A date, also with a time or a weekday, as a prompt shows them.
_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[ T]\d\d:\d\d(?::\d\d)?)?(?:, \w{6,9})?)?)?"
)
_DAYS_BY_PRECISION: Final = {"day": 1, "month": 31, "year": 366}
# Unicode categories of invisible characters.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

# Reasons for a review.
INFERRED: Final = "inferred"
UNVERIFIED: Final = "unverified"
CONFLICT: Final = "conflict"
LOW_CONFIDENCE: Final = "low confidence"
UNCERTAIN_PERIOD: Final = "past, planned or temporary"
ENDS_ONE_VALUE: Final = "ends one of several values"
NOT_IN_QUOTE: Final = "not in the quote"
ALL: Final = "all facts are reviewed"


class AnswerInvalid(ValueError):
    """The answer of a language model is no list of candidates."""


class MalformedCandidate(ValueError):
    """An object of an answer is not a valid candidate."""


def _as_line(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    if any(unicodedata.category(character) in _INVISIBLE for character in text):
        raise ValueError("it has control characters")
    return " ".join(text.split())


Line = Annotated[str, AfterValidator(_as_line)]
Id = Annotated[Line, Field(max_length=MAX_ID_CHARACTERS)]
Name = Annotated[Line, Field(max_length=MAX_NAME_CHARACTERS)]


class Evidence(BaseModel):
    """A quote from a message that supports a candidate."""

    model_config = ConfigDict(strict=True, frozen=True)

    message: Name = ""
    """The label of the message; "": the message that contains the quote."""
    quote: str = Field(min_length=1, max_length=MAX_QUOTE_CHARACTERS)
    """It is compared unchanged, with its white space."""


class Candidate(BaseModel):
    """A proposed fact with its evidence. Unknown members of an answer are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: Id
    subject: Name
    slot: Name
    is_multi_valued: bool = Field(True, alias="multi")
    value: Annotated[Line, Field(max_length=MAX_VALUE_CHARACTERS)]
    fact: Annotated[Line, Field(max_length=MAX_FACT_CHARACTERS)]
    kind: Name = FactKind.OBSERVED.value
    """observed or inferred."""
    speaker: Name = ""
    """"": the author of the quotes."""
    evidence: list[Evidence] = Field(min_length=1, max_length=MAX_EVIDENCE)
    valid_from: SkipValidation[date | None] = None
    """A date, or a datetime with a time zone."""
    precision: str = ""
    supersedes: Id | None = None
    """The label of a known fact, or the id of an earlier candidate."""
    confidence: float | None = Field(None, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class Source:
    """A message that candidates may cite."""

    label: str
    id: Any
    role: str
    speaker: str
    """The author's name; "user" or "assistant" without a name."""
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownFact:
    """An active fact of the same agent and user."""

    label: str
    id: UUID | None
    subject: str
    slot: str
    is_multi_valued: bool
    value: str
    fact: str
    valid_from: datetime

    def is_same_slot(self, candidate: Candidate) -> bool:
        """Return whether the fact has the subject and the slot of the candidate."""
        return self.slot == candidate.slot and _is_same_text(self.subject, candidate.subject)


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
    spans: tuple[Span, ...]
    asserter: str
    valid_from: datetime | None
    """None: the time of the statement."""
    supersedes: KnownFact | None
    """The known fact that the candidate replaces."""
    review: str
    """Why a person must review it; empty: no review is required."""


@dataclass(frozen=True, slots=True)
class RefusedCandidate:
    """A candidate that failed a check."""

    id: str
    reason: str
    fact: str = ""


# --- Parsing --------------------------------------------------------------------------------------


def parse(answer: str) -> tuple[list[Candidate], list[RefusedCandidate]]:
    """Parse the answer of a language model.

    Args:
        answer: a JSON object `{"facts": […]}`, or text that contains exactly one.

    Returns:
        The well-formed candidates, and those that are refused as malformed, in their order.

    Raises:
        AnswerInvalid: there is no such object, or it has too many facts.
    """
    document = _only_object(answer)
    facts = document.get("facts")
    if not isinstance(facts, list):
        raise AnswerInvalid('the answer has no list "facts"')
    if len(facts) > MAX_CANDIDATES:
        raise AnswerInvalid(f"the answer has {len(facts)} facts, more than {MAX_CANDIDATES}")
    candidates: list[Candidate] = []
    refused: list[RefusedCandidate] = []
    for position, entry in enumerate(facts, start=1):
        try:
            candidates.append(parse_candidate(entry, position))
        except ValueError as error:
            refused.append(RefusedCandidate(f"#{position}", "malformed", str(error)))
    return candidates, refused


def complete_facts(answer: str) -> str:
    """Return an answer with the complete facts of an answer that was cut at a limit."""
    decoder = json.JSONDecoder()
    facts: list[str] = []
    at = answer.find("{", answer.find("["))
    while at >= 0 and len(facts) < MAX_CANDIDATES:
        try:
            _, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            break
        facts.append(answer[at:end])
        at = answer.find("{", end)
    return f'{{"facts": [{", ".join(facts)}]}}'


def _only_object(answer: str) -> dict[str, Any]:
    found: list[str] = []
    at, starts = answer.find("{"), 0
    decoder = json.JSONDecoder()
    while at >= 0:  # ends: each iteration moves on, MAX_OBJECT_STARTS times at most
        starts += 1
        if starts > MAX_OBJECT_STARTS:
            raise AnswerInvalid("the answer is not a JSON object")
        try:
            _, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found.append(answer[at:end])
        at = answer.find("{", end)
    if len(found) != 1:
        raise AnswerInvalid(f"the answer contains {len(found) or 'no'} JSON objects instead of one")
    try:
        document = read_json(found[0])
    except NotStrictJSON as error:
        raise AnswerInvalid(str(error)) from error
    return dict(document)


def parse_candidate(entry: Any, position: int = 1) -> Candidate:
    """Read one object of an answer. Unknown members are ignored.

    The members that the prompt does not ask for are optional: the id is that of the position, the
    speaker is the author of the quote, and the kind is observed.

    Raises:
        ValueError: a member is missing, has another type, or is too long (MalformedCandidate).
    """
    if not isinstance(entry, dict):
        raise MalformedCandidate("it is not an object")
    valid_from, precision = _date(entry.get("valid_from"), entry.get("precision"))
    default = {"id": f"f{position}", "evidence": [{"quote": entry.get("quote")}]}
    checked = {"valid_from": valid_from, "precision": precision}
    try:
        return Candidate.model_validate(
            {**default, **entry, **checked, "supersedes": entry.get("supersedes") or None}
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise MalformedCandidate(f"{first['loc']}: {first['msg']}") from None


def _date(value: Any, precision: Any) -> tuple[date | None, str]:
    """Read YYYY, YYYY-MM or YYYY-MM-DD with its precision, or a time with a time zone."""
    if precision not in (None, *Precision.values):
        raise MalformedCandidate("precision is not day, month or year")
    if value in (None, ""):
        return None, ""
    if not isinstance(value, str):
        raise MalformedCandidate("valid_from is not a date")
    match = _DATE.fullmatch(value)
    if match is None:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise MalformedCandidate("valid_from has no time zone")
        try:
            return moment.astimezone(UTC), ""
        except OverflowError:
            raise MalformedCandidate("valid_from is out of range") from None
    year, month, day = (int(part) if part else None for part in match.groups())
    written_precision = Precision.DAY if day else Precision.MONTH if month else Precision.YEAR
    order = [Precision.DAY, Precision.MONTH, Precision.YEAR]
    stated_precision = precision or written_precision
    if order.index(stated_precision) < order.index(written_precision):
        raise MalformedCandidate("precision is finer than valid_from")
    return date(year or 0, month or 1, day or 1), stated_precision


# --- Checks ---------------------------------------------------------------------------------------


def check_candidates(
    candidates: Sequence[Candidate],
    *,
    sources: Sequence[Source],
    known: Sequence[KnownFact] = (),
    policy: ReviewPolicy = ReviewPolicy(),
) -> tuple[list[AcceptedCandidate], list[RefusedCandidate]]:
    """Check candidates against the messages that they cite and the known facts.

    Args:
        candidates: the candidates in the order of the answer. A later one may supersede an earlier.
        sources: the messages that they may cite, by label.
        known: the active facts of the same agent and user.
        policy: the review policy of the agent.

    Returns:
        The accepted candidates with the places of their quotes, and the refused ones with reasons.
    """
    by_label = {source.label: source for source in sources}
    marked = {source.id: mark_parts_of_others(source.content) for source in sources}
    facts = {fact.label: fact for fact in known}
    accepted: list[AcceptedCandidate] = []
    refused: list[RefusedCandidate] = []
    for candidate in candidates:
        cited = [
            by_label.get(evidence.message) or _containing(evidence, sources, marked)
            for evidence in candidate.evidence
        ]
        spans = tuple(_spans(candidate, cited, marked))
        if None in cited:
            reason = "unknown message"
        elif len(spans) < len(cited):
            reason = "quote not in message"
        else:
            reason = _refusal(candidate, spans, facts)
        checked = reason or _accept(candidate, spans, facts, policy)
        if isinstance(checked, str):
            refused.append(RefusedCandidate(candidate.id, checked, candidate.fact))
            continue
        accepted.append(checked)
        facts.setdefault(candidate.id, _as_known(checked))
    return accepted, refused


def _containing(
    evidence: Evidence, sources: Sequence[Source], marked: Mapping[Any, str]
) -> Source | None:
    """Return the message with a quote without a label: the newest of users, or else of others.

    Messages in which the words are their author's come first.
    """
    if evidence.message or not sources:
        return None
    found = [source for source in sources if evidence.quote in source.content]
    of_users = [source for source in found if source.role == Role.USER]
    own = [source for source in of_users if evidence.quote in marked[source.id]]
    # Without one, any message: the check of the quote refuses it.
    return (own or of_users or found or sources)[-1]


def _spans(
    candidate: Candidate, cited: Sequence[Source | None], marked: Mapping[Any, str]
) -> Iterator[Span]:
    for evidence, source in zip(candidate.evidence, cited, strict=True):
        if source is None:
            continue
        quote = evidence.quote
        own = marked[source.id]
        start = own.find(quote) if quote in own else source.content.find(quote)
        is_long_enough = sum(map(str.isalnum, quote)) >= MIN_QUOTE_LETTERS
        if start >= 0 and (is_long_enough or quote == source.content):
            end = start + len(quote)
            part = next((PARTS_OF_OTHERS[c] for c in own[start:end] if c in PARTS_OF_OTHERS), "")
            yield Span(source, start, end, part)


def _refusal(candidate: Candidate, spans: Sequence[Span], facts: Mapping[str, KnownFact]) -> str:
    """Return why a candidate with these quotes is refused; "" if it is accepted."""
    if len(_asserters(candidate, spans)) != 1:
        return "speaker is not the author"
    if _SLOT.fullmatch(candidate.slot) is None:
        return "slot is not snake_case"
    if candidate.kind not in (FactKind.OBSERVED, FactKind.INFERRED):
        return "unknown kind"
    texts = (candidate.fact, candidate.value, candidate.subject)
    if is_instruction(*texts) or any(orders_agent(_quote(span)) for span in spans):
        return "instruction"
    if is_other_language(candidate.fact, " ".join(span.source.content for span in spans)):
        return "other language"
    if candidate.valid_from and candidate.valid_from.year > _latest(spans).year + MAX_YEARS_AHEAD:
        return "date out of range"
    superseded = facts.get(candidate.supersedes or "")
    if candidate.supersedes and (superseded is None or not superseded.is_same_slot(candidate)):
        return "supersedes another slot" if superseded else "supersedes an unknown fact"
    return ""


def _accept(
    candidate: Candidate,
    spans: tuple[Span, ...],
    facts: Mapping[str, KnownFact],
    policy: ReviewPolicy,
) -> AcceptedCandidate | str:
    """Return the candidate with its reasons for a review, or why it is refused after all."""
    same_slot = [fact for fact in facts.values() if fact.is_same_slot(candidate)]
    is_multi_valued = same_slot[0].is_multi_valued if same_slot else candidate.is_multi_valued
    (asserter,) = _asserters(candidate, spans)
    part = next((span.part for span in spans if span.part), "")
    is_unverified = any(
        span.source.role != Role.USER or span.source.speaker != asserter for span in spans
    )
    kind = FactKind.INFERRED if is_unverified or part else candidate.kind
    changed = {"is_multi_valued": is_multi_valued, "kind": kind}
    candidate = candidate.model_copy(update=changed)
    superseded = facts.get(candidate.supersedes or "")
    others = [fact for fact in same_slot if not _is_same_text(fact.value, candidate.value)]
    begins = _valid_from(candidate, spans)
    # A planned, past or temporary value must not end the current value without a review.
    is_planned = candidate.valid_from is not None and begins is None
    is_past = superseded is not None and begins is not None and begins < superseded.valid_from
    is_temporary = any(is_limited_in_time(_sentence(span)) for span in spans)
    has_uncertain_period = (is_planned or is_past or is_temporary) and not is_multi_valued
    if superseded is not None and begins is not None and superseded.valid_from <= _latest(spans):
        # `valid_from` of the known fact may be that of its statement. It must not end before.
        begins = max(begins, superseded.valid_from)
    is_contradicted = not is_multi_valued and any(
        fact is not superseded and fact.valid_from <= (begins or _latest(spans)) for fact in others
    )
    quotes = " ".join(map(_quote, spans))
    has_value = has_words_of(f"{quotes} {asserter}", candidate.value)
    has_subject = has_words_of(f"{quotes} {asserter} {Role.USER}", candidate.subject)
    if len(others) < len(same_slot) and not has_value:
        # The quote would become evidence of a known fact, which it does not state.
        return NOT_IN_QUOTE
    has_low_confidence = candidate.confidence is not None and candidate.confidence < MIN_CONFIDENCE
    doubts = [
        CONFLICT if is_contradicted else "",
        ENDS_ONE_VALUE if is_multi_valued and superseded in others else "",
        UNCERTAIN_PERIOD if others and has_uncertain_period else "",
        UNVERIFIED if is_unverified or any(orders_agent(s.source.content) for s in spans) else "",
        part,
        INFERRED if kind == FactKind.INFERRED and not (is_unverified or part) else "",
        sensitive_topic(candidate.slot, f"{candidate.value} {candidate.fact}"),
        LOW_CONFIDENCE if has_low_confidence else "",
        "" if has_subject and has_value else NOT_IN_QUOTE,
    ]
    return AcceptedCandidate(
        candidate=candidate,
        spans=spans,
        asserter=asserter,
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


def _valid_from(candidate: Candidate, spans: Sequence[Span]) -> datetime | None:
    """Return when the fact became valid; None: at the time of the statement.

    If the stated period includes the statement, such as “this month”, it is the statement's time. A
    date after the statement is the date of a plan, and the plan is valid since its statement.
    """
    value, stated = candidate.valid_from, _latest(spans)
    if value is None:
        return None
    if isinstance(value, datetime):
        begin = end = value
    else:
        begin = datetime(value.year, value.month, value.day, tzinfo=UTC)
        end = begin + timedelta(days=_DAYS_BY_PRECISION.get(candidate.precision, 0))
    if begin > stated:
        return None
    return stated if stated < end else begin


def _asserters(candidate: Candidate, spans: Sequence[Span]) -> set[str]:
    """Return the names of those authors of the quotes who are the candidate's speaker."""
    return {
        span.source.speaker
        for span in spans
        if not candidate.speaker
        or _is_same_text(candidate.speaker, span.source.speaker)
        or _is_same_text(candidate.speaker, span.source.role)
    }


def _latest(spans: Sequence[Span]) -> datetime:
    return max(span.source.created_at for span in spans)


def _quote(span: Span) -> str:
    return span.source.content[span.start : span.end]


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
        subject=candidate.subject,
        slot=candidate.slot,
        is_multi_valued=candidate.is_multi_valued,
        value=candidate.value,
        fact=candidate.fact,
        valid_from=accepted.valid_from or _latest(accepted.spans),
    )


def _is_same_text(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()
