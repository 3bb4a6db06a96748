"""Candidates: the facts that a language model proposes, and how its answer is parsed. Pure."""

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Final

import pydantic
from pydantic.json_schema import SkipJsonSchema

from konstruct.strict_json import NotStrictJSON, read_json
from memory.models import FactKind, Precision

MAX_CANDIDATES: Final = 200
MAX_EVIDENCE: Final = 5
MAX_ID_CHARACTERS: Final = 40
MAX_NAME_CHARACTERS: Final = 100
MAX_VALUE_CHARACTERS: Final = 300
MAX_FACT_CHARACTERS: Final = 500
MAX_QUOTE_CHARACTERS: Final = 1_000
# The maximum number of positions at which a JSON object is searched for in an answer.
MAX_OBJECT_STARTS: Final = 20

# A date, also with a time or a weekday, as a prompt shows them.
_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[ T]\d\d:\d\d(?::\d\d)?)?(?:, \w{6,9})?)?)?"
)
# Unicode categories of invisible characters.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


class AnswerInvalid(ValueError):
    """The answer of a language model is no list of candidates."""


def _as_line(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    if any(unicodedata.category(character) in _INVISIBLE for character in text):
        raise ValueError("it has control characters")
    return " ".join(text.split())


Line = Annotated[str, pydantic.AfterValidator(_as_line)]
Id = Annotated[Line, pydantic.Field(max_length=MAX_ID_CHARACTERS)]
Name = Annotated[Line, pydantic.Field(max_length=MAX_NAME_CHARACTERS)]


class Evidence(pydantic.BaseModel):
    """A quote from a message that supports a candidate."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    message: Name = ""
    """The label of the message; "": the message that contains the quote."""
    quote: str = pydantic.Field(min_length=1, max_length=MAX_QUOTE_CHARACTERS)
    """It is compared unchanged, with its white space."""


class Candidate(pydantic.BaseModel):
    """A proposed fact with its evidence. Unknown members of an answer are ignored.

    The members of its JSON schema are those that a request asks for. The others are optional.
    """

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    quote: str = ""
    """The evidence, unless the answer has `evidence`."""
    subject: Name
    slot: Annotated[
        Name,
        pydantic.WithJsonSchema(
            {"type": "string", "pattern": "^[a-z]{2,20}(_[a-z0-9]{1,20}){0,4}$"}
        ),
    ]
    is_multi_valued: bool = pydantic.Field(True, alias="multi")
    value: Annotated[Line, pydantic.Field(max_length=MAX_VALUE_CHARACTERS)]
    fact: Annotated[Line, pydantic.Field(max_length=MAX_FACT_CHARACTERS)]
    valid_from: Annotated[
        pydantic.SkipValidation[date | None],
        pydantic.WithJsonSchema(
            {"type": ["string", "null"], "pattern": "^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"}
        ),
    ] = None
    """A date, or a datetime with a time zone."""
    id: SkipJsonSchema[Id]
    supersedes: SkipJsonSchema[Id | None] = None
    """The label of a known fact, or the id of an earlier candidate."""
    kind: SkipJsonSchema[Name] = FactKind.OBSERVED.value
    """observed or inferred."""
    speaker: SkipJsonSchema[Name] = ""
    """"": the author of the quotes."""
    evidence: SkipJsonSchema[list[Evidence]] = pydantic.Field(min_length=1, max_length=MAX_EVIDENCE)
    precision: SkipJsonSchema[str] = ""
    confidence: SkipJsonSchema[float | None] = pydantic.Field(None, ge=0, le=1)


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
        except (TypeError, ValueError) as error:
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
        TypeError, ValueError: a member is missing, has another type, or is too long.
    """
    if not isinstance(entry, dict):
        raise TypeError("it is not an object")
    valid_from, precision = _date(entry.get("valid_from"), entry.get("precision"))
    default = {"id": f"f{position}", "evidence": [{"quote": entry.get("quote")}]}
    checked = {"valid_from": valid_from, "precision": precision}
    try:
        return Candidate.model_validate(
            {**default, **entry, **checked, "supersedes": entry.get("supersedes") or None}
        )
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{first['loc']}: {first['msg']}") from None


def _date(value: Any, precision: Any) -> tuple[date | None, str]:
    """Read YYYY, YYYY-MM or YYYY-MM-DD with its precision, or a time with a time zone."""
    if precision not in (None, *Precision.values):
        raise ValueError("precision is not day, month or year")
    if value in (None, ""):
        return None, ""
    if not isinstance(value, str):
        raise TypeError("valid_from is not a date")
    match = _DATE.fullmatch(value)
    if match is None:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("valid_from has no time zone")
        try:
            return moment.astimezone(UTC), ""
        except OverflowError:
            raise ValueError("valid_from is out of range") from None
    year, month, day = (int(part) if part else None for part in match.groups())
    written_precision = Precision.DAY if day else Precision.MONTH if month else Precision.YEAR
    order = [Precision.DAY, Precision.MONTH, Precision.YEAR]
    stated_precision = precision or written_precision
    if order.index(stated_precision) < order.index(written_precision):
        raise ValueError("precision is finer than valid_from")
    return date(year or 0, month or 1, day or 1), stated_precision
