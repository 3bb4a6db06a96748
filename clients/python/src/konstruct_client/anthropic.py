"""Anthropic's SDK: the memory tool, for its tool runner. Needs the extra `anthropic`."""

from __future__ import annotations

from typing import Any

from konstruct_client._extras import extra
from konstruct_client.client import Client
from konstruct_client.errors import Problem

with extra("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError


class KonstructMemoryTool(BetaAbstractMemoryTool):
    """For `anthropic.beta.messages.tool_runner(tools=[KonstructMemoryTool(…)], …)`.

    Args:
        client: the client.
        agent: name or id of the agent that remembers.
        user_id: the user, or the project, that the files belong to.
    """

    def __init__(self, client: Client, *, agent: str, user_id: str) -> None:
        super().__init__()
        self._client, self._agent, self._user_id = client, agent, user_id

    def call(self, input: Any) -> str:
        """Run a command; raise ToolError with the text that the language model gets."""
        try:
            result = self._client.memory_tool.run(
                agent=self._agent, user_id=self._user_id, input=input
            )
        except Problem as problem:
            raise ToolError(f"Error: {problem.detail}") from problem
        if result["is_error"]:
            raise ToolError(result["content"])
        return result["content"]

    def _unused(self, command: Any) -> str:
        raise NotImplementedError("call() runs every command")

    view = create = str_replace = insert = delete = rename = _unused
