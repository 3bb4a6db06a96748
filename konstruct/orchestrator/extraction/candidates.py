"""Candidates: the facts that a language model proposes, and how its answer is parsed. Pure."""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice, takewhile
from typing import Annotated, Any, Final

import pydantic
from pydantic.json_schema import SkipJsonSchema

from konstruct.strict_json import NotStrictJSON, read_json
from memory.models import Precision

MAX_CANDIDATES: Final = 200
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
Name = Annotated[Line, pydantic.Field(max_length=MAX_NAME_CHARACTERS)]


class Candidate(pydantic.BaseModel):
    """A proposed fact with its evidence. Unknown members of an answer are ignored.

    The members of its JSON schema are those that a request asks for.
    """

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    quote: str = pydantic.Field(min_length=1, max_length=MAX_QUOTE_CHARACTERS)
    """The evidence. It is compared unchanged, with its white space."""
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
    precision: SkipJsonSchema[str] = ""
    """Of `valid_from`."""
    id: SkipJsonSchema[str]
    """f1, f2, … by its place in the answer."""
    supersedes: SkipJsonSchema[Name | None] = None
    """The label of a known fact, or the id of an earlier candidate."""


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
    objects = takewhile(bool, _objects(answer, answer.find("[")))
    return f'{{"facts": [{", ".join(islice(objects, MAX_CANDIDATES))}]}}'


def _objects(answer: str, at: int) -> Iterator[str]:
    """Yield the JSON objects of an answer from a position on; "" for a brace that begins none."""
    decoder, at = json.JSONDecoder(), answer.find("{", at)
    while at >= 0:  # ends: each iteration moves on
        try:
            _, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            end = at + 1
            yield ""
        else:
            yield answer[at:end]
        at = answer.find("{", end)


def _only_object(answer: str) -> dict[str, Any]:
    starts = list(islice(_objects(answer, 0), MAX_OBJECT_STARTS + 1))
    if len(starts) > MAX_OBJECT_STARTS:
        raise AnswerInvalid("the answer is not a JSON object")
    found = [*filter(None, starts)]
    if len(found) != 1:
        raise AnswerInvalid(f"the answer contains {len(found) or 'no'} JSON objects instead of one")
    try:
        document = read_json(found[0])
    except NotStrictJSON as error:
        raise AnswerInvalid(str(error)) from error
    return dict(document)


def parse_candidate(entry: Any, position: int = 1) -> Candidate:
    """Read one object of an answer. Unknown members are ignored.

    Raises:
        TypeError, ValueError: a member is missing, has another type, or is too long.
    """
    if not isinstance(entry, dict):
        raise TypeError("it is not an object")
    valid_from, precision = _date(entry.get("valid_from"))
    read = {"id": f"f{position}", "valid_from": valid_from, "precision": precision}
    try:
        return Candidate.model_validate(
            {**entry, **read, "supersedes": entry.get("supersedes") or None}
        )
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{first['loc']}: {first['msg']}") from None


def _date(value: Any) -> tuple[date | None, str]:
    """Read YYYY, YYYY-MM or YYYY-MM-DD; return the date with its precision."""
    if value in (None, ""):
        return None, ""
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("valid_from is not a date")
    year, month, day = (int(part) if part else None for part in match.groups())
    precision = Precision.DAY if day else Precision.MONTH if month else Precision.YEAR
    return date(year or 0, month or 1, day or 1), precision
