"""What goes over the wire to a language model and comes back. Pure: no Django, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from konstruct.orchestrator.exceptions import LLMReplyInvalid

TEXT_KEYS = ("content", "text", "response", "message", "output", "reply", "completion")


@dataclass(frozen=True)
class Endpoint:
    """One address and the API that is spoken there."""

    url: str
    api: Literal["pool", "openai"]

    def payload(
        self, messages: Sequence[Mapping[str, str]], *, model: str, tier: str
    ) -> dict[str, Any]:
        """Return the request's JSON.

        An agent without a model leaves the choice to the pool, which is told the tier; OpenAI's API
        demands a model, and gateways such as LiteLLM take a tier's name as an alias.
        """
        if self.api == "openai":
            return {"model": model or tier, "messages": list(messages)}
        chosen = {"model": model} if model else {}
        return {**chosen, "model_tier": tier, "messages": list(messages)}


def endpoints(url: str, api: str, *, known: str | None = None) -> list[Endpoint]:
    """Return the addresses to try, in order.

    `auto` takes a URL that ends in `/v1` (or names the whole path) for OpenAI's. Any other is asked
    at `/complete` first, and at `/v1/chat/completions` if that path is unknown there. `known` is
    what an earlier answer showed.
    """
    base = url.rstrip("/")
    if base.endswith("/chat/completions"):
        openai = Endpoint(base, "openai")
    elif base.endswith("/v1"):
        openai = Endpoint(f"{base}/chat/completions", "openai")
    else:
        openai = Endpoint(f"{base}/v1/chat/completions", "openai")
    pool = Endpoint(f"{base}/complete", "pool")
    if api == "pool" or (api == "auto" and known == "pool"):
        return [pool]
    if api == "openai" or known == "openai" or base.endswith(("/v1", "/chat/completions")):
        return [openai]
    return [pool, openai]


def read_reply(data: Any) -> str:
    """Return the text of an answer, in any of the shapes in use.

    `{"content"|"text"|"response"|…: text}`, `{"message": {"content": text}}`,
    `{"choices": [{"message": {"content": text}}]}`, and text in parts
    (`[{"type": "text", "text": …}]`). Raises LLMReplyInvalid if there is none.
    """
    # Postgres stores neither NUL bytes nor lone surrogates, both of which JSON can carry.
    text = _text(data).replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not text:
        raise LLMReplyInvalid(
            f"The language model's answer holds no text: {str(data)[:300]!r}. Expected JSON "
            'such as {"content": "…"} or {"choices": [{"message": {"content": "…"}}]}.'
        )
    return text


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "".join(_text(part) for part in data if _is_text_part(part))
    if isinstance(data, Mapping):
        choices = data.get("choices")
        if isinstance(choices, list) and choices:
            return _text(choices[0])
        for key in TEXT_KEYS:
            if data.get(key):
                return _text(data[key])
    return ""


def _is_text_part(part: Any) -> bool:
    return not isinstance(part, Mapping) or part.get("type", "text") in ("text", "output_text")


def retry_after_seconds(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After header: a number or an HTTP date; None if neither."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
