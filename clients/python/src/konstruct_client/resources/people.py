"""People: users, escalations, tool calls, linked identities and erasures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from konstruct_client import documents
from konstruct_client._calls import Call, Page, given, listing, once, segment
from konstruct_client._methods import Resource, S, call, pages
from konstruct_client.resources.messages import ByTime, Moment

CallState = Literal["waiting", "with_program", "approved", "denied", "expired", "done", "failed"]
TimelineKind = Literal[
    "message", "recall", "fact", "escalation", "consent", "exclusion", "window", "account",
    "erasure", "access",
]  # fmt: skip


class Users(Resource[S]):
    """End users that are known."""

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        q: str | None = None,
        ordering: Literal["user_id", "-user_id"] | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.User]]:
        """List users in the order of their ids, with counts.

        Args:
            agent: only users whom this agent knows.
            user_id: only this user.
            q: only users with this in a name, in their id or in a linked account.
            ordering: by the id, ascending or descending.
            limit: users of a page.
        """
        return listing("users/", agent=agent, user_id=user_id, q=q, ordering=ordering, limit=limit)

    @pages
    def timeline(
        self,
        user_id: str,
        *,
        agent: str | None = None,
        kind: TimelineKind | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.TimelineEntry]]:
        """List the events of a user, newest first.

        Args:
            user_id: the user, with all ids that are linked to this one.
            agent: only of this agent.
            kind: only events of this kind.
            until: only events before this moment.
            limit: events of a page.
        """
        path = f"users/{segment(user_id)}/timeline/"
        return listing(path, agent=agent, kind=kind, until=until, limit=limit)

    @call
    def get(self, user_id: str) -> Call[documents.Profile]:
        """Get the name, time zone, language and metadata that are set of a user."""
        return Call("GET", f"users/{segment(user_id)}/")

    @call
    def put(
        self,
        user_id: str,
        *,
        name: str | None = None,
        time_zone: str | None = None,
        language: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Call[documents.Profile]:
        """Set all of it. What is left out becomes empty.

        Args:
            user_id: the user, who may be new.
            name: the user's name.
            time_zone: such as Asia/Tokyo; by default that of the channel or the agent.
            language: such as de or pt-BR.
            metadata: a JSON object.
        """
        body = given(name=name, time_zone=time_zone, language=language, metadata=metadata)
        return Call("PUT", f"users/{segment(user_id)}/", body=body)

    @call
    def update(
        self,
        user_id: str,
        *,
        name: str | None = None,
        time_zone: str | None = None,
        language: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Call[documents.Profile]:
        """Set some of it. Metadata is merged: null removes a name."""
        body = given(name=name, time_zone=time_zone, language=language, metadata=metadata)
        return Call("PATCH", f"users/{segment(user_id)}/", body=body)

    @call
    def export(self, user_id: str) -> Call[documents.Export]:
        """Export all data of a person. It needs a key with the scope `erase`."""
        return Call("GET", f"users/{segment(user_id)}/export/")

    @call
    def search(
        self,
        q: str,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Call[documents.SearchAnswer]:
        """Search the messages of all people, facts and people, by words and by meaning.

        Args:
            q: words, a meaning or a name.
            agent: only memories of this agent.
            user_id: only this user's.
            channel: only messages of this channel.
            since: only messages from this moment on.
            until: only messages before this moment.
            limit: messages at most.
        """
        query = given(
            q=q,
            agent=agent,
            user_id=user_id,
            channel=channel,
            since=since,
            until=until,
            limit=limit,
        )
        return Call("GET", "search/", query)

    @call
    def usage(self) -> Call[documents.Usage]:
        """Get counts of the tenant, with pending work."""
        return Call("GET", "usage/")

    @call
    def usage_by_day(
        self, *, first: str, last: str, agent: str | None = None, channel: str | None = None
    ) -> Call[documents.UsageByDay]:
        """Get messages, replies by source, reply times and tokens of each day.

        Args:
            first: the first day (UTC), as YYYY-MM-DD.
            last: the last day.
            agent: of this agent alone.
            channel: of this channel alone.
        """
        query = given(first=first, last=last, agent=agent, channel=channel)
        return Call("GET", "usage/days/", query=query)

    @call
    def model_usage(
        self, *, agent: str | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> Call[documents.ModelUsage]:
        """Get the calls, tokens and money of language models by day, agent, purpose and model.

        Args:
            agent: only of this agent.
            since: by default 30 days ago.
            until: only calls before this moment.
        """
        return Call("GET", "usage/models/", given(agent=agent, since=since, until=until))


class Erasures(Resource[S]):
    """Requests that a user be forgotten. They need a key with the scope `erase`."""

    @call
    def request(
        self,
        user_id: str,
        *,
        agent: str | None = None,
        threads: Iterable[str] | None = None,
        all_replies: bool | None = None,
        replies: Iterable[str] | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.Erasure]:
        """Ask that a user be forgotten, by all agents or by one. An open request is returned again.

        Args:
            threads: sessions of graphs that are the user's, beside their conversations.
            all_replies: whether to erase all replies to others that `replies` lists.
            replies: ids of those of them to erase.
            reason: why; it stays on the receipt.
            idempotency_key: the same request under the same key is the same erasure.
        """
        body = given(
            user_id=user_id,
            agent=agent,
            threads=None if threads is None else [*threads],
            all_replies=all_replies,
            replies=None if replies is None else [*replies],
            reason=reason,
        )
        return Call("POST", "erasures/", body=body, headers=once(idempotency_key))

    @pages
    def replies(
        self, user_id: str, *, agent: str | None = None, limit: int | None = None
    ) -> Call[Page[documents.AffectedReply]]:
        """List the replies to others that were written with words of a user, newest first."""
        return listing("erasures/replies/", user_id=user_id, agent=agent, limit=limit)

    @call
    def get(self, erasure_id: str) -> Call[documents.Erasure]:
        """Get the state of a request."""
        return Call("GET", f"erasures/{segment(erasure_id)}/")

    @pages
    def list(
        self,
        *,
        user_id: str | None = None,
        state: Literal["open", "done"] | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Erasure]]:
        """List the erasures of users, newest first.

        Args:
            user_id: only of this user, also after the erasure.
            state: "open" or "done".
            ordering: "created_at" for the oldest first.
            limit: erasures of a page.
        """
        return listing("erasures/", user_id=user_id, state=state, ordering=ordering, limit=limit)


class Escalations(Resource[S]):
    """Threads in which a person or another agent answers."""

    @call
    def open(
        self, *, agent: str, user_id: str, thread_id: str, reason: str, to_agent: str | None = None
    ) -> Call[documents.Escalation]:
        """Hand a thread to a person, or to another agent. One that is open stays as it is."""
        body = given(
            agent=agent, user_id=user_id, thread_id=thread_id, reason=reason, to_agent=to_agent
        )
        return Call("POST", "escalations/", body=body)

    @call
    def get(self, escalation_id: str) -> Call[documents.Escalation]:
        """Get an escalation."""
        return Call("GET", f"escalations/{segment(escalation_id)}/")

    @call
    def assign(self, escalation_id: str, *, assigned_to: str) -> Call[documents.Escalation]:
        """Assign an escalation to a member of the team by username; "": unassigned."""
        path = f"escalations/{segment(escalation_id)}/assignment/"
        return Call("PUT", path, body={"assigned_to": assigned_to})

    @call
    def answer(
        self,
        escalation_id: str,
        *,
        content: str,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.AnswerMessage]:
        """Answer the user as a person."""
        path = f"escalations/{segment(escalation_id)}/answer/"
        body = given(content=content, name=name)
        return Call("POST", path, body=body, headers=once(idempotency_key))

    @call
    def resolve(
        self, escalation_id: str, *, let_agent_answer: bool, note: str | None = None
    ) -> Call[documents.Escalation]:
        """Resolve an escalation. With `let_agent_answer` the agent answers the waiting messages."""
        path = f"escalations/{segment(escalation_id)}/resolution/"
        body = given(let_agent_answer=let_agent_answer, note=note)
        return Call("POST", path, body=body, repeatable=False)

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        state: Literal["open", "resolved"] | None = None,
        to: Literal["person", "agent"] | None = None,
        to_agent: str | None = None,
        ordering: Literal["-opened_at", "opened_at"] | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Escalation]]:
        """List escalations, newest first."""
        return listing(
            "escalations/", agent=agent, user_id=user_id, thread_id=thread_id, state=state, to=to,
            to_agent=to_agent, ordering=ordering, limit=limit,
        )  # fmt: skip


class ToolCalls(Resource[S]):
    """Tool calls of agents, and the consent of users."""

    @call
    def get(self, call_id: str) -> Call[documents.ToolCall]:
        """Get a tool call, with its question and arguments."""
        return Call("GET", f"tool-calls/{segment(call_id)}/")

    @call
    def decide(self, call_id: str, *, approve: bool) -> Call[documents.ToolCall]:
        """Send the user's decision. The same again changes nothing."""
        path = f"tool-calls/{segment(call_id)}/decision/"
        return Call("POST", path, body={"approve": approve})

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        message_id: str | None = None,
        state: CallState | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.ToolCall]]:
        """List tool calls, newest first."""
        return listing(
            "tool-calls/", agent=agent, user_id=user_id, message_id=message_id, state=state,
            since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip


class Identities(Resource[S]):
    """Accounts of channels, and the users that they belong to."""

    @call
    def name(
        self, *, channel: str, native_id: str, workspace: str | None = None, name: str | None = None
    ) -> Call[documents.Identity]:
        """Create the identity of a channel's account. An existing one stays."""
        body = given(channel=channel, workspace=workspace, native_id=native_id, name=name)
        return Call("POST", "identities/", body=body)

    @call
    def get(self, identity_id: str) -> Call[documents.Identity]:
        """Get an identity."""
        return Call("GET", f"identities/{segment(identity_id)}/")

    @call
    def link(self, identity_id: str, *, user_id: str) -> Call[documents.Identity]:
        """Link an identity to an existing user."""
        path = f"identities/{segment(identity_id)}/link/"
        return Call("PUT", path, body={"user_id": user_id})

    @call
    def unlink(self, identity_id: str) -> Call[documents.Identity]:
        """Unlink an identity. It is a separate user again."""
        return Call("DELETE", f"identities/{segment(identity_id)}/link/")

    @pages
    def list(
        self,
        *,
        channel: str | None = None,
        workspace: str | None = None,
        native_id: str | None = None,
        user_id: str | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Identity]]:
        """List identities, newest first."""
        return listing(
            "identities/", channel=channel, workspace=workspace, native_id=native_id,
            user_id=user_id, ordering=ordering, limit=limit,
        )  # fmt: skip
