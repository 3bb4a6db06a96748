"""Errors: a class for each type of problem of the API.

A problem that is newer than this client is raised as the class of its status.
"""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

TYPE_PREFIX = "urn:konstruct:problem:"


class KonstructError(Exception):
    """Base of all errors of this client."""


class ConnectionFailed(KonstructError):
    """There was no answer. Whether the request was done is not known."""


class TimedOut(ConnectionFailed):
    """There was no answer in time."""


class Problem(KonstructError):
    """The API has refused a request. Nothing of a refused request was done."""

    kind: ClassVar[str] = ""

    def __init__(self, document: dict[str, Any], *, retry_after: float | None = None) -> None:
        self.document = document
        self.type: str = document["type"]
        self.status: int = document["status"]
        self.detail: str = document["detail"]
        self.request_id: str = document.get("request_id", "")
        """Under which the server's log has the request."""
        self.errors: list[dict[str, Any]] = document.get("errors", [])
        """For each field: `field`, `detail`, and the `value` if it is short."""
        self.retry_after = retry_after
        """Seconds after which to try again, if the server sent them."""
        super().__init__(self._text())

    def _text(self) -> str:
        known = {self.detail}
        told = [f"{each['field']}: {each['detail']}" for each in self.errors]
        told = [each for each in told if each.partition(": ")[2] not in known]
        return " ".join([f"{self.status}: {self.detail}", *told])


class BadRequest(Problem):
    """400: the request cannot be understood."""

    kind = "bad-request"


class InvalidFields(BadRequest):
    """Some fields are invalid. `errors` has the fields, with remedies."""

    kind = "invalid-fields"


class MalformedBody(BadRequest):
    """The body is not readable JSON."""

    kind = "malformed-body"


class Unauthenticated(Problem):
    """401: the key opens nothing."""

    kind = "unauthenticated"


class Forbidden(Problem):
    """403: the key has not the scope, or is bound."""

    kind = "forbidden"


class OutsideOfKey(Forbidden):
    """The key is bound to a user, and the request is about another."""

    kind = "outside-of-key"


class NotFound(Problem):
    """404: there is no such thing for this key."""

    kind = "not-found"


class MethodNotAllowed(Problem):
    """405: the address does not know this method."""

    kind = "method-not-allowed"


class NotAcceptable(Problem):
    """406: the address does not answer in this form."""

    kind = "not-acceptable"


class RequestTimeout(Problem):
    """408: the body did not arrive in time."""

    kind = "request-timeout"


class Conflict(Problem):
    """409: the request conflicts with the state of the object."""

    kind = "conflict"


class IdempotencyKeyInUse(Conflict):
    """The first request with this Idempotency-Key is still at work."""

    kind = "idempotency-key-in-use"


class AlreadyResolved(Conflict):
    """The escalation is over."""

    kind = "already-resolved"


class AlreadyDecided(Conflict):
    """The tool call was decided otherwise, or has expired."""

    kind = "already-decided"


class NothingToLink(Conflict):
    """The identity cannot be linked to this user."""

    kind = "nothing-to-link"


class TooManyQuestions(Conflict):
    """The agent has as many saved questions as it may."""

    kind = "too-many-questions"


class LimitReached(Conflict):
    """The tenant has as many such objects as it may."""

    kind = "limit-reached"


class WrongState(Conflict):
    """A decision about a fact or a run does not fit its state."""

    kind = "wrong-state"


class OwnProposal(Conflict):
    """The key, or another key of the same person, proposed the fact: another has to confirm it."""

    kind = "own-proposal"


class SlotTaken(Conflict):
    """The slot of a fact has another value: retract that fact first."""

    kind = "slot-taken"


class DuplicateFact(Conflict):
    """Another fact of the same agent and user has this text."""

    kind = "duplicate-fact"


class BeingErased(Conflict):
    """The user is being erased; nothing can be kept of them meanwhile."""

    kind = "being-erased"


class NameTaken(Conflict):
    """Another agent has this name."""

    kind = "name-taken"


class ChangedSince(Problem):
    """412: it has changed since it was read."""

    kind = "changed-since"


class BodyTooLarge(Problem):
    """413: send less in one request."""

    kind = "body-too-large"


class AddressTooLong(Problem):
    """414: parameters of an address are too long."""

    kind = "address-too-long"


class UnsupportedMediaType(Problem):
    """415: the body is not JSON."""

    kind = "unsupported-media-type"


class Unprocessable(Problem):
    """422: the request was understood and cannot be done."""

    kind = "unprocessable"


class ExtractionFailed(Unprocessable):
    """There are no messages to extract facts from, or the model's answer has no list of facts."""

    kind = "extraction-failed"


class ImportRefused(Unprocessable):
    """A file of history, or an option of its import, cannot be used."""

    kind = "import-refused"


class ModelFailed(Unprocessable):
    """The language model refused the request, or gave no usable answer."""

    kind = "model-failed"


class ExtractionLimitReached(Unprocessable):
    """The agent has used its tokens for facts of today (UTC)."""

    kind = "extraction-limit-reached"


class UnknownAgent(Unprocessable):
    """There is no such agent for this key."""

    kind = "unknown-agent"


class UnknownThread(Unprocessable):
    """The user has no messages in this thread."""

    kind = "unknown-thread"


class IdempotencyKeyReused(Unprocessable):
    """The Idempotency-Key was sent with another body before."""

    kind = "idempotency-key-reused"


class ThreadOfOthers(Unprocessable):
    """The thread is not the user's alone."""

    kind = "thread-of-others"


class UnreadableSession(Unprocessable):
    """The session's state cannot be read."""

    kind = "unreadable-session"


class ContradictoryFields(Unprocessable):
    """Fields of the agent contradict each other."""

    kind = "contradictory-fields"


class TooManyRequests(Problem):
    """429: wait for `retry_after` seconds."""

    kind = "too-many-requests"


class QuotaExceeded(Problem):
    """402 or 429: a quota of the tenant is used up; 429 until `retry_after`."""

    kind = "quota-exceeded"


class ServerError(Problem):
    """500: the server's fault."""

    kind = "internal-error"


class Unavailable(Problem):
    """503: a service that the API needs is not running, or is overloaded."""

    kind = "unavailable"


class ReplyInterrupted(Unavailable):
    """A stream broke off in the middle of a reply, which is being given anew: ask for it again."""

    kind = "reply-interrupted"


def _all_of(base: type[Problem]) -> list[type[Problem]]:
    return [each for sub in base.__subclasses__() for each in (sub, *_all_of(sub))]


BY_KIND = {each.kind: each for each in _all_of(Problem)}
_BY_STATUS: dict[int, type[Problem]] = {
    400: BadRequest, 401: Unauthenticated, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed,
    406: NotAcceptable, 408: RequestTimeout, 409: Conflict, 412: ChangedSince, 413: BodyTooLarge,
    414: AddressTooLong,
    415: UnsupportedMediaType, 422: Unprocessable, 429: TooManyRequests, 503: Unavailable,
}  # fmt: skip


def problem_of(response: httpx.Response, *, retry_after: float | None) -> Problem:
    """Return the error that a refusing response is."""
    try:
        return problem_in(response.json(), retry_after=retry_after)
    except (ValueError, KeyError, TypeError, AttributeError):  # such as a proxy's page
        detail = f"{response.reason_phrase}: {response.text[:200]}"
        document = {"type": "about:blank", "status": response.status_code, "detail": detail}
        return problem_in(document, retry_after=retry_after)


def problem_in(document: dict[str, Any], *, retry_after: float | None = None) -> Problem:
    """Return the error of a problem document."""
    status, kind = document["status"], document["type"].removeprefix(TYPE_PREFIX)
    usual = Problem if status < 500 else ServerError
    found = BY_KIND.get(kind) or _BY_STATUS.get(status, usual)
    return found(document, retry_after=retry_after)
