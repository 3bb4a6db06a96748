"""Errors of the language model's client."""

from tenants.exceptions import KonstructError


class LLMError(KonstructError):
    """The language model gave no answer that can be used.

    What its server said may hold anything, and goes to the operators, as `detail`.
    """

    code = "llm_failed"

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class LLMUnavailable(LLMError):
    """It may work later: no connection, too many requests, an error of the server.

    `retry_after` is how many seconds the server asked us to wait, if it did.
    """

    code = "llm_unavailable"

    def __init__(self, message: str, *, retry_after: float | None = None, detail: str = "") -> None:
        super().__init__(message, detail=detail)
        self.retry_after = retry_after


class LLMTimeout(LLMUnavailable):
    """It did not answer in time."""

    code = "llm_timeout"


class LLMRefused(LLMError):
    """It will not work later either: the request itself was refused (a 4xx)."""

    code = "llm_refused"


class LLMReplyInvalid(LLMError):
    """The answer came and held no text that we can read."""

    code = "llm_reply_invalid"
