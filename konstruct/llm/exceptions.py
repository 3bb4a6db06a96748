"""Errors of the language model's client."""

from collections.abc import Mapping
from decimal import Decimal

from tenants.exceptions import KonstructError


class LLMError(KonstructError):
    """The language model gave no usable answer.

    `detail` is for operators. It contains no words of the prompt: see `CompletionRequest.excerpt`.
    `status` is the HTTP status of a refusal, and `retry_after` the number of seconds that the
    server asked to wait, if it did.
    """

    code = "llm_failed"
    is_retryable = False
    """Whether the client retries the request."""
    requests = 1
    """The number of requests that were sent, with retries."""
    usage: Mapping[str, int] | None = None
    """Numbers of tokens of an answer that cannot be used, if the server has reported them."""
    cost = Decimal(0)
    """What all calls cost, by the prices at their time."""

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.detail, self.status, self.retry_after = detail, status, retry_after


class LLMUnavailable(LLMError):
    """A later request may succeed: no connection, too many requests, an error of the server."""

    code = "llm_unavailable"
    is_retryable = True


class LLMTimeout(LLMUnavailable):
    """The language model did not answer in time."""

    code = "llm_timeout"
    is_retryable = False


class LLMRefused(LLMError):
    """The server refused the request (a 4xx): a later request would fail too."""

    code = "llm_refused"


class LLMReplyInvalid(LLMError):
    """The server answered, without a text or tool calls that can be read."""

    code = "llm_reply_invalid"
    is_retryable = True


class LLMReplyTooLong(LLMReplyInvalid):
    """The answer is longer than the client allows."""

    is_retryable = False

    def __init__(self, size: str, max_characters: int) -> None:
        super().__init__(
            "The language model's answer is too long.",
            detail=f"The server sent {size}, more than the {max_characters:,} characters that "
            "are allowed.",
        )
