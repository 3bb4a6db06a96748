"""Coding agents: files of Anthropic's memory tool, and hooks of Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konstruct_client import documents
from konstruct_client._calls import Call, given
from konstruct_client._methods import Resource, S, call


class MemoryTool(Resource[S]):
    """Anthropic's memory tool. `konstruct_client.anthropic` has it for the SDK's tool runner."""

    @call
    def run(
        self, *, agent: str, user_id: str, input: Mapping[str, Any]
    ) -> Call[documents.MemoryToolResult]:
        """Run the `input` of a `tool_use` block; return `content` and `is_error` of its result."""
        body = {"agent": agent, "user_id": user_id, "input": input}
        return Call("POST", "memory-tool/", body=body, repeatable=False)


class ClaudeCode(Resource[S]):
    """Claude Code sends its hooks itself; a program can pass on those that it receives."""

    @call
    def hook(
        self,
        *,
        agent: str,
        user_id: str,
        session_id: str,
        hook_event_name: str,
        prompt: str | None = None,
        last_assistant_message: str | None = None,
    ) -> Call[None]:
        """Store the prompt or the final reply of a hook."""
        query = {"agent": agent, "user_id": user_id}
        body = given(
            session_id=session_id, hook_event_name=hook_event_name, prompt=prompt,
            last_assistant_message=last_assistant_message,
        )  # fmt: skip
        return Call("POST", "claude-code/hooks/", query=query, body=body)
