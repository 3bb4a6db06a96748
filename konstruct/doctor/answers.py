"""The subjects of an examination, their checks, and the findings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final


class Status(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not as well or as safely as it should, or it could not be checked."""
    WRONG = "wrong"
    """It does not work, or tenants are not isolated."""


SEVERITY: Final = {Status.OK: 0, Status.WARNING: 1, Status.WRONG: 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. Each that is not `ok` has a remedy."""

    status: Status
    text: str
    remedy: str = ""


def ok(text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(Status.OK, text)


def warning(text: str, remedy: str) -> Finding:
    """Return a finding that can wait until the next day."""
    return Finding(Status.WARNING, text, remedy)


def wrong(text: str, remedy: str) -> Finding:
    """Return a finding that cannot wait."""
    return Finding(Status.WRONG, text, remedy)


def rate(number: float, text: str, remedy: str, *, warn: float, bad: float) -> Finding:
    """Return a finding about a number: a warning from `warn` on, wrong from `bad` on."""
    if number >= bad:
        return wrong(text, remedy)
    return warning(text, remedy) if number >= warn else ok(text)


Check = Callable[[], Iterator[Finding]]


@dataclass(frozen=True)
class Subject:
    """A part of the deployment, such as a server. One thread makes its checks, in their order."""

    name: str
    """As answers name it."""
    checks: Mapping[str, Check]
    """By name."""
    connect: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Connect for all of the checks. If it raises, the check `connection` is wrong."""
    remedy: str = ""
    """For a subject that cannot be reached, or does not answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A finding with its check and subject."""

    check: str
    subject: str
    status: Status
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Report:
    """All answers of an examination."""

    answers: Sequence[Answer] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The worst status of all answers."""
        statuses = [answer.status for answer in self.answers]
        return max(statuses, key=SEVERITY.__getitem__, default=Status.OK)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "status": self.status,
            "seconds": round(self.seconds, 2),
            "answers": [asdict(answer) for answer in self.answers],
        }
