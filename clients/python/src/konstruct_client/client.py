"""The client, in two forms: one that waits, and one for event loops."""

from __future__ import annotations

import os
import re
from typing import Any, Generic

import httpx

from konstruct_client._methods import S
from konstruct_client._sending import AsyncSender, Options, Sender
from konstruct_client.errors import KonstructError
from konstruct_client.resources.agents import Agents, Context, LanguageModels, Questions, Sessions
from konstruct_client.resources.coding_agents import ClaudeCode, MemoryTool
from konstruct_client.resources.facts import ExtractionRuns, Extractions, Facts
from konstruct_client.resources.messages import Conversations, Imports, Memories, Messages, Windows
from konstruct_client.resources.people import Erasures, Escalations, Identities, ToolCalls, Users
from konstruct_client.resources.webhooks import ApiKeys, Events, WebhookDeliveries, Webhooks


class Resources(Generic[S]):
    """The resources of the API."""

    def __init__(self, sender: S) -> None:
        self.agents = Agents(sender)
        self.api_keys = ApiKeys(sender)
        self.claude_code = ClaudeCode(sender)
        self.context = Context(sender)
        self.conversations = Conversations(sender)
        self.erasures = Erasures(sender)
        self.escalations = Escalations(sender)
        self.events = Events(sender)
        self.extraction_runs = ExtractionRuns(sender)
        self.extractions = Extractions(sender)
        self.facts = Facts(sender)
        self.identities = Identities(sender)
        self.imports = Imports(sender)
        self.language_models = LanguageModels(sender)
        self.memories = Memories(sender)
        self.memory_tool = MemoryTool(sender)
        self.messages = Messages(sender)
        self.questions = Questions(sender)
        self.sessions = Sessions(sender)
        self.tool_calls = ToolCalls(sender)
        self.users = Users(sender)
        self.webhook_deliveries = WebhookDeliveries(sender)
        self.webhooks = Webhooks(sender)
        self.windows = Windows(sender)


class Client(Resources[Sender]):
    """Talks with a Konstruct. May be used from several threads; close it, or use it in a `with`.

    Args:
        url: such as `http://localhost:8000`; by default the environment's KONSTRUCT_URL.
        key: an API key, which decides the tenant; by default KONSTRUCT_API_KEY.
        timeout: seconds until a response, in addition to the wait of the call.
        retries: how often a request is sent again, if that is safe and may help.
        longest_retry_after: a server that asks for a longer wait is not waited for.
        http: an httpx client of your own, which stays open.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30,
        retries: int = 3,
        longest_retry_after: float = 30,
        http: httpx.Client | None = None,
    ) -> None:
        options = _options(url, key, timeout, retries, longest_retry_after)
        self._http, self._is_own = http or httpx.Client(), http is None
        super().__init__(Sender(options, self._http))

    def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            self._http.close()

    def __enter__(self) -> Client:
        """Return the client, which the block closes."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the connections."""
        self.close()


class AsyncClient(Resources[AsyncSender]):
    """Talks with a Konstruct from an event loop: the same calls, awaited. See `Client`."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30,
        retries: int = 3,
        longest_retry_after: float = 30,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        options = _options(url, key, timeout, retries, longest_retry_after)
        self._http, self._is_own = http or httpx.AsyncClient(), http is None
        super().__init__(AsyncSender(options, self._http))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._is_own:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        """Return the client, which the block closes."""
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Close the connections."""
        await self.aclose()


def _options(
    url: str | None, key: str | None, timeout: float, retries: int, longest_retry_after: float
) -> Options:
    url = (url or os.environ.get("KONSTRUCT_URL", "")).strip().rstrip("/").removesuffix("/api/v1")
    key = (key or os.environ.get("KONSTRUCT_API_KEY", "")).strip()
    if not url:
        raise KonstructError("no url: pass one, or set KONSTRUCT_URL")
    if not url.startswith(("http://", "https://")):
        raise KonstructError(f"url={url!r} is none: begin it with http:// or https://")
    if not key:
        raise KonstructError("no key: pass one, or set KONSTRUCT_API_KEY")
    if not re.fullmatch(r"[\x21-\x7e]+", key):  # not in the error: it is a secret
        raise KonstructError("the key has characters that no key has: pass it as you were given it")
    return Options(url, key, timeout, retries, longest_retry_after)
