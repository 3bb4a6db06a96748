"""Sends calls, again where that is safe: at once, or from an event loop."""

from __future__ import annotations

import asyncio
import json
import platform
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from uuid import UUID

import httpx

from konstruct_client._calls import Call
from konstruct_client._version import __version__
from konstruct_client.errors import ConnectionFailed, KonstructError, TimedOut, problem_of

T = TypeVar("T")
Outcome = httpx.Response | httpx.TransportError

USER_AGENT = (
    f"konstruct-client/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}"
)
# Objects that may not exist when the same request is repeated.
PASSING = frozenset({408, 500, 502, 503, 504})
FIRST_WAIT, MAX_WAIT = 0.5, 8.0


@dataclass(frozen=True)
class Options:
    """How requests are sent."""

    url: str
    key: str
    timeout: float
    retries: int
    longest_retry_after: float

    def request(self, call: Call[Any], **headers: str) -> dict[str, Any]:
        """Return the request of a call, as httpx takes it."""
        sent = {
            "Authorization": f"Bearer {self.key}",
            "User-Agent": USER_AGENT,
            "Accept": "application/json",
            **call.headers,
            **headers,
        }
        content = None
        if call.body is not None:
            content = json.dumps(call.body, default=_plain).encode()
            sent["Content-Type"] = "application/json"
        return {
            "method": call.method,
            "url": f"{self.url}/api/v1/{call.path}",
            "params": {name: _parameter(value) for name, value in call.query.items()},
            "content": content,
            "headers": sent,
            # What the server was asked to wait comes on top.
            "timeout": httpx.Timeout(self.timeout, read=self.timeout + call.seconds),
        }

    def wait_before_next(self, call: Call[Any], attempt: int, outcome: Outcome) -> float | None:
        """Return the seconds until the call is sent again, None if it is not.

        Args:
            attempt: how often it was sent, from 1.
        """
        if attempt > self.retries or not _may_repeat(call, outcome):
            return None
        told = retry_after(outcome) if isinstance(outcome, httpx.Response) else None
        if told is not None:
            return told if told <= self.longest_retry_after else None
        # Spread, so that those who were refused together do not come together again.
        longest = min(MAX_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)  # noqa: S311  (no secret)


class Sender:
    """Sends calls, and waits for the answers."""

    def __init__(self, options: Options, http: httpx.Client) -> None:
        self.options, self.http = options, http

    def send(self, call: Call[T]) -> T:
        """Send a call, and return its result."""
        request, attempt = self.options.request(call), 0
        # Ends: `wait_before_next` allows `retries` further attempts.
        while True:
            attempt += 1
            outcome: Outcome
            try:
                outcome = self.http.request(**request)
            except httpx.TransportError as error:
                outcome = error
            wait = self.options.wait_before_next(call, attempt, outcome)
            if wait is None:
                return answer_of(call, outcome)
            time.sleep(wait)

    def lines(self, call: Call[Any]) -> Iterator[str]:
        """Send a call; yield the lines of its answer as they come."""
        request, attempt, has_begun = self.options.request(call), 0, False
        # Ends: `wait_before_next` allows `retries` further attempts.
        while True:
            attempt += 1
            outcome: Outcome
            try:
                with self.http.stream(**request) as outcome:
                    if outcome.is_success:
                        has_begun = True
                        yield from outcome.iter_lines()
                        return
                    outcome.read()
            except httpx.TransportError as error:
                if has_begun:
                    raise no_answer(error) from error
                outcome = error
            wait = self.options.wait_before_next(call, attempt, outcome)
            if wait is None:
                answer_of(call, outcome)
                return
            time.sleep(wait)


class AsyncSender:
    """Sends calls from an event loop."""

    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        self.options, self.http = options, http

    async def send(self, call: Call[T]) -> T:
        """Send a call, and return its result."""
        request, attempt = self.options.request(call), 0
        # Ends: `wait_before_next` allows `retries` further attempts.
        while True:
            attempt += 1
            outcome: Outcome
            try:
                outcome = await self.http.request(**request)
            except httpx.TransportError as error:
                outcome = error
            wait = self.options.wait_before_next(call, attempt, outcome)
            if wait is None:
                return answer_of(call, outcome)
            await asyncio.sleep(wait)

    async def lines(self, call: Call[Any]) -> AsyncIterator[str]:
        """Send a call; yield the lines of its answer as they come."""
        request, attempt, has_begun = self.options.request(call), 0, False
        # Ends: `wait_before_next` allows `retries` further attempts.
        while True:
            attempt += 1
            outcome: Outcome
            try:
                async with self.http.stream(**request) as outcome:
                    if outcome.is_success:
                        has_begun = True
                        async for line in outcome.aiter_lines():
                            yield line
                        return
                    await outcome.aread()
            except httpx.TransportError as error:
                if has_begun:
                    raise no_answer(error) from error
                outcome = error
            wait = self.options.wait_before_next(call, attempt, outcome)
            if wait is None:
                answer_of(call, outcome)
                return
            await asyncio.sleep(wait)


def answer_of(call: Call[T], outcome: Outcome) -> T:
    """Return the result of a response, or raise its error."""
    if isinstance(outcome, httpx.TransportError):
        raise no_answer(outcome) from outcome
    if not outcome.is_success:
        raise problem_of(outcome, retry_after=retry_after(outcome))
    try:
        return call.parse(outcome)
    except (ValueError, KeyError, TypeError) as error:
        what = f"{outcome.request.method} {outcome.request.url}"
        raise KonstructError(f"{what}: the response does not come from Konstruct") from error


def no_answer(error: httpx.TransportError) -> ConnectionFailed:
    """Return our error for one of the connection."""
    kind = TimedOut if isinstance(error, httpx.TimeoutException) else ConnectionFailed
    asked = error.request.url.copy_with(query=None)
    return kind(f"no answer from {asked}: {str(error) or type(error).__name__}")


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of the Retry-After header, if there is one."""
    told = response.headers.get("Retry-After", "")
    if told.isascii() and told.isdigit():
        return float(told)
    try:
        at = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds()) if at.tzinfo else None


def _may_repeat(call: Call[Any], outcome: Outcome) -> bool:
    if isinstance(outcome, httpx.TransportError):
        never_sent = isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout)
        never_will = isinstance(outcome, httpx.LocalProtocolError | httpx.UnsupportedProtocol)
        return never_sent or (call.repeatable and not never_will)
    if outcome.status_code == 429:
        return True  # a refused request has done nothing
    if outcome.status_code == 409:
        return "Retry-After" in outcome.headers  # the same is still at work
    return call.repeatable and outcome.status_code in PASSING


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{value!r} is nothing that JSON has")


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=_plain)
    return value.isoformat() if isinstance(value, datetime) else str(value)
