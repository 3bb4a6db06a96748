"""Agents, the sessions of their graphs, and prompts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from konstruct_client import documents
from konstruct_client._calls import Call, Page, given, listing, matching, once, segment, tagged
from konstruct_client._methods import Resource, S, call, pages
from konstruct_client.resources.messages import Moment

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

AgentOrder = Literal["name", "-name", "-created_at", "created_at"]


class Agents(Resource[S]):
    """Agents. None is ever deleted: `is_active=False` closes it."""

    @call
    def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[documents.NewAgent]
    ) -> Call[documents.Agent]:
        """Make an agent."""
        return Call("POST", "agents/", body=fields, headers=once(idempotency_key))

    @call
    def get(self, agent_id: str) -> Call[documents.Agent]:
        """Get an agent by its id."""
        return Call("GET", _path(agent_id))

    @call
    def get_tagged(self, agent_id: str) -> Call[tuple[documents.Agent, str]]:
        """Get an agent and its ETag, for `if_match`."""
        return Call("GET", _path(agent_id), parse=tagged)

    @call
    def change(
        self,
        agent_id: str,
        *,
        if_match: str | None = None,
        **fields: Unpack[documents.AgentChanges],
    ) -> Call[documents.Agent]:
        """Change an agent. Omitted fields stay.

        Args:
            if_match: the ETag that you have read. Raises `ChangedSince` if it has changed.
        """
        headers = matching(if_match)
        return Call("PATCH", _path(agent_id), body=fields, headers=headers, repeatable=False)

    @pages
    def list(
        self,
        *,
        is_active: bool | None = None,
        ordering: AgentOrder | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Agent]]:
        """List agents by name."""
        return listing("agents/", is_active=is_active, ordering=ordering, limit=limit)

    @pages
    def versions(
        self, agent_id: str, *, limit: int | None = None
    ) -> Call[Page[documents.AgentVersion]]:
        """List the versions of an agent, the newest first."""
        return listing(f"{_path(agent_id)}versions/", limit=limit)

    @call
    def restore(
        self, agent_id: str, number: int, *, note: str | None = None
    ) -> Call[documents.Agent]:
        """Restore a version of an agent, which is a new version.

        Args:
            number: of the version.
            note: why, for the list of versions.
        """
        address = f"{_path(agent_id)}versions/{number}/restore/"
        return Call("POST", address, body=given(note=note), repeatable=False)

    @call
    def dry_run(
        self,
        agent_id: str,
        content: str,
        *,
        user_id: str | None = None,
        draft: documents.DraftFields | None = None,
    ) -> Call[documents.DryRun]:
        """Get an agent's answer to a message without storing anything.

        Args:
            user_id: the person who writes; by default a person without memories.
            draft: settings of a draft of the agent, which gets the same message.
        """
        body = given(content=content, user_id=user_id, draft=draft)
        return Call("POST", f"{_path(agent_id)}dry-runs/", body=body, repeatable=False)


class Questions(Resource[S]):
    """Saved questions: an agent is asked them again after each change, by dry runs."""

    @call
    def save(
        self,
        agent_id: str,
        content: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.SavedQuestion]:
        """Save a question to an agent, which is asked it now.

        Args:
            user_id: the person who asks; by default a person without memories.
        """
        body = given(content=content, user_id=user_id)
        return Call("POST", _questions(agent_id), body=body, headers=once(idempotency_key))

    @call
    def get(self, agent_id: str, question_id: str) -> Call[documents.SavedQuestion]:
        """Get a saved question."""
        return Call("GET", f"{_questions(agent_id)}{segment(question_id)}/")

    @call
    def delete(self, agent_id: str, question_id: str) -> Call[None]:
        """Delete a saved question with its answers."""
        return Call("DELETE", f"{_questions(agent_id)}{segment(question_id)}/")

    @pages
    def list(
        self, agent_id: str, *, limit: int | None = None
    ) -> Call[Page[documents.SavedQuestion]]:
        """List the saved questions of an agent, the newest first."""
        return listing(_questions(agent_id), limit=limit)

    @pages
    def answers(
        self,
        agent_id: str,
        *,
        question_id: str | None = None,
        version: int | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.QuestionAnswer]]:
        """List the answers of an agent's versions, newest first."""
        return listing(
            f"{_questions(agent_id)}answers/", question_id=question_id, version=version,
            since=since, until=until, limit=limit,
        )  # fmt: skip

    @call
    def ask(self, agent_id: str) -> Call[documents.QuestionRun]:
        """Have a worker ask an agent its saved questions again."""
        return Call("POST", f"{_questions(agent_id)}run/")

    @call
    def run(self, agent_id: str) -> Call[documents.QuestionRun]:
        """Get the state of an agent's saved questions."""
        return Call("GET", f"{_questions(agent_id)}run/")


class LanguageModels(Resource[S]):
    """The tenant's own language models. No response has a key."""

    @call
    def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[documents.NewLanguageModel]
    ) -> Call[documents.LanguageModel]:
        """Create a language model."""
        return Call("POST", "language-models/", body=fields, headers=once(idempotency_key))

    @call
    def get(self, language_model_id: str) -> Call[documents.LanguageModel]:
        """Get a language model."""
        return Call("GET", f"language-models/{segment(language_model_id)}/")

    @call
    def change(
        self, language_model_id: str, **fields: Unpack[documents.LanguageModelChanges]
    ) -> Call[documents.LanguageModel]:
        """Change a language model. Omitted fields stay."""
        return Call("PATCH", f"language-models/{segment(language_model_id)}/", body=fields)

    @call
    def delete(self, language_model_id: str) -> Call[None]:
        """Delete a language model that no agent names."""
        return Call("DELETE", f"language-models/{segment(language_model_id)}/")

    @call
    def test(self, language_model_id: str) -> Call[documents.LanguageModelTest]:
        """Measure a language model, and what it can do."""
        path = f"language-models/{segment(language_model_id)}/test/"
        return Call("POST", path, repeatable=False)

    @pages
    def list(self, *, limit: int | None = None) -> Call[Page[documents.LanguageModel]]:
        """List language models by name."""
        return listing("language-models/", limit=limit)


class Sessions(Resource[S]):
    """Threads of LangGraph graphs."""

    @pages
    def list(self, *, limit: int | None = None) -> Call[Page[documents.Session]]:
        """List sessions, last used first."""
        return listing("sessions/", limit=limit)

    @call
    def get(
        self, thread_id: str, *, limit: int | None = None
    ) -> Call[documents.SessionWithMessages]:
        """Get a session with its newest messages, at most so many, oldest first."""
        return Call("GET", f"sessions/{segment(thread_id)}/", given(limit=limit))

    @call
    def clear(self, thread_id: str) -> Call[None]:
        """Clear a session: its whole history, for good."""
        return Call("DELETE", f"sessions/{segment(thread_id)}/")


class Context(Resource[S]):
    """Prompts within a budget of tokens."""

    @call
    def compile(
        self,
        task: str | Mapping[str, Any],
        *,
        agent: str,
        user_id: str | None = None,
        thread_id: str | None = None,
        messages: Iterable[documents.ChatMessage] | None = None,
        system_prompt: str | None = None,
        model_tier: Literal["fast", "reasoning"] | None = None,
    ) -> Call[documents.Compiled]:
        """Make a prompt for a task from the agent's facts and memories.

        Args:
            task: text, or an object with a `description` and further data.
            user_id: the user who asks; without it the prompt has no data of users.
            thread_id: a graph's session, whose turns are the history.
            messages: the turns before the task, if you have them yourself.
        """
        turns = None if messages is None else list(messages)
        body = given(
            agent=agent, task=task, user_id=user_id, thread_id=thread_id, messages=turns,
            system_prompt=system_prompt, model_tier=model_tier,
        )  # fmt: skip
        return Call("POST", "context/compile/", body=body)


def _path(agent_id: str) -> str:
    return f"agents/{segment(agent_id)}/"


def _questions(agent_id: str) -> str:
    return f"{_path(agent_id)}questions/"
