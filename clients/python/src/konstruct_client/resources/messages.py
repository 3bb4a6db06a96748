"""Messages, replies, conversations and memories."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from konstruct_client import documents
from konstruct_client._calls import Call, Page, given, listing, once, segment
from konstruct_client._methods import Resource, S, call, pages, stream

Status = Literal[
    "queued", "answered", "failed", "closed", "with_person", "awaiting_consent", "with_program"
]
ToolChoice = Literal["none", "auto", "required"]
ByTime = Literal["-created_at", "created_at"]
Moment = datetime | str
ImportFormat = Literal[
    "slack", "whatsapp", "telegram", "chatgpt", "sharegpt", "mem0", "zep", "csv", "transcript"
]


class Messages(Resource[S]):
    """Messages to agents, and their replies."""

    @call
    def send(
        self,
        content: str,
        *,
        agent: str,
        user_id: str,
        thread_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        instructions: str | None = None,
        options: Mapping[str, Any] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        wait: float = 0,
        wait_for: Literal["reply", "indexed"] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.Message]:
        """Send a message of a user to an agent.

        Args:
            agent: its name or id.
            user_id: who speaks, in your terms.
            thread_id: the conversation; by default one per user.
            name: the speaker's display name.
            metadata: a JSON object that searches and lists can filter by.
            instructions: for this reply, after the agent's own.
            options: such as `temperature`, by the names of OpenAI's API.
            tools: tools of your program, as in OpenAI's API. With the status `with_program`, run
                the calls in `waits_for`, and send their results with `send_tool_results`.
            tool_choice, parallel_tool_calls: as in OpenAI's API, until the first results.
            wait: seconds to wait for the reply, 60 at most. Look at the answer's `status`.
            wait_for: `indexed`: wait until searches can find the message. Look at `indexed`.
            idempotency_key: the same request under the same key is the same message.
        """
        body = given(
            agent=agent, user_id=user_id, thread_id=thread_id, name=name, content=content,
            metadata=metadata, instructions=instructions, options=options,
            tools=None if tools is None else list(tools), tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
        )  # fmt: skip
        query = given(wait=wait or None, wait_for=wait_for)
        return Call("POST", "messages/", query, body, once(idempotency_key), seconds=wait)

    @stream
    def stream(
        self,
        content: str,
        *,
        agent: str,
        user_id: str,
        thread_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        instructions: str | None = None,
        options: Mapping[str, Any] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        wait: float = 0,
        idempotency_key: str | None = None,
    ) -> Call[documents.Message]:
        """Send a message, and stream its reply: iterate over the result.

        After the last piece, `message` has the result of `send`. The reply is stored in any case.

        Args:
            wait: seconds for which to read at most; 180 by default.
        """
        body = given(
            agent=agent, user_id=user_id, thread_id=thread_id, name=name, content=content,
            metadata=metadata, instructions=instructions, options=options,
            tools=None if tools is None else list(tools), tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
        )  # fmt: skip
        query = {"wait": wait} if wait else {}
        headers = {"Accept": "text/event-stream", **once(idempotency_key)}
        return Call("POST", "messages/", query, body, headers)

    @call
    def send_tool_results(
        self, message_id: str, results: Iterable[Mapping[str, Any]], *, wait: float = 0
    ) -> Call[documents.Message]:
        """Send the results of your program's tools, so that the message is answered.

        Args:
            results: for each call in `waits_for`, an object with `tool_call_id` and `content`.
            wait: seconds to wait for the reply, 60 at most.
        """
        path = f"messages/{segment(message_id)}/tool-results/"
        body = {"results": [dict(result) for result in results]}
        return Call("POST", path, given(wait=wait or None), body, seconds=wait)

    @call
    def erase(
        self, message_id: str, *, quotes: bool | None = None, reason: str | None = None
    ) -> Call[documents.Erasure]:
        """Ask that a message be erased, with its reply. It needs a key with the scope `erase`.

        Args:
            quotes: whether to erase the replies that quote it too.
            reason: why; it stays on the receipt.
        """
        query = given(quotes=quotes, reason=reason)
        return Call("DELETE", f"messages/{segment(message_id)}/", query)

    @call
    def get(self, message_id: str, *, wait: float = 0) -> Call[documents.Message]:
        """Get a message, with its reply if there is one by then or after so many seconds."""
        query = {"wait": wait} if wait else {}
        return Call("GET", f"messages/{segment(message_id)}/", query, seconds=wait)

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        status: Status | None = None,
        filters: Mapping[str, Any] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Message]]:
        """List messages of users, newest first.

        Args:
            filters: values of the metadata: `{"order": 17}`, `{"order": {"gte": 17}}`.
            limit: the size of a page, 200 at most.
        """
        return listing(
            "messages/", agent=agent, user_id=user_id, thread_id=thread_id, status=status,
            filters=filters, since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip

    @pages
    def exclusions(
        self, message_id: str, *, limit: int | None = None
    ) -> Call[Page[documents.Exclusion]]:
        """List the exclusions of a message, newest first."""
        return listing(f"messages/{segment(message_id)}/exclusions/", limit=limit)

    @call
    def exclude(
        self,
        message_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        reason: str | None = None,
    ) -> Call[documents.Exclusion]:
        """Exclude a message from recall, or its words from `start` to before `end`."""
        body = given(start=start, end=end, reason=reason)
        return Call("POST", f"messages/{segment(message_id)}/exclusions/", body=body)

    @call
    def include(self, message_id: str, exclusion_id: str) -> Call[None]:
        """Remove an exclusion from recall."""
        address = f"messages/{segment(message_id)}/exclusions/{segment(exclusion_id)}/"
        return Call("DELETE", address)

    @call
    def import_history(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        wait: float = 0,
        idempotency_key: str | None = None,
    ) -> Call[documents.ImportResult]:
        """Import up to 1,000 messages of another system. They get no reply.

        A message has `role` (user or assistant) and `content`, and may have `agent`, `user_id`,
        `thread_id`, `external_id`, `created_at` and `name`. One that is invalid keeps no other out:
        look at the answer's `invalid`, and at the `errors` of its results.

        Args:
            agent, user_id, thread_id: defaults for messages without them.
            wait: seconds to wait until searches can find the messages, 60 at most.
            idempotency_key: with one, a message without id and time is another one than under
                another key. Without one, it is known again by its thread, words and place.
        """
        body = given(agent=agent, user_id=user_id, thread_id=thread_id) | {
            "messages": [dict(each) for each in messages]
        }
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        query = given(wait=wait or None)
        return Call("POST", "messages/import/", query, body, headers, seconds=wait)


class Imports(Resource[S]):
    """Files of other systems."""

    @call
    def create(
        self,
        file: bytes,
        *,
        file_name: str,
        format: ImportFormat | None = None,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        people: Mapping[str, str] | None = None,
        agent_names: Iterable[str] | None = None,
        time_zone: str | None = None,
        date_order: Literal["dmy", "mdy", "ymd"] | None = None,
        columns: Mapping[str, str] | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.HistoryImport]:
        """Import a file of another system, or preview it with `dry_run`.

        Args:
            file: its content, of at most 1.8 MB: pack a larger one as zip.
            file_name: its name; a longer export has the same one.
            people: ids of users by names in the file.
            agent_names: names of the agent in the file.
            time_zone: of times without one.
        """
        body = given(
            file=base64.b64encode(file).decode(), file_name=file_name, format=format, agent=agent,
            user_id=user_id, thread_id=thread_id, people=people, time_zone=time_zone,
            agent_names=None if agent_names is None else list(agent_names),
            date_order=date_order, columns=columns, dry_run=dry_run,
        )  # fmt: skip
        return Call("POST", "imports/", body=body, headers=once(idempotency_key))

    @call
    def get(self, import_id: str) -> Call[documents.HistoryImport]:
        """Get the state of an import, and its report."""
        return Call("GET", f"imports/{segment(import_id)}/")


class Conversations(Resource[S]):
    """Conversations by agent, user and thread."""

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Conversation]]:
        """List conversations, by their latest message.

        Args:
            title: only those with this text in their title.
            metadata: only those whose metadata has these values.
        """
        return listing(
            "conversations/", agent=agent, user_id=user_id, thread_id=thread_id, title=title,
            metadata=metadata, since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip

    @call
    def update(
        self,
        *,
        agent: str,
        user_id: str,
        thread_id: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Call[documents.ConversationRow]:
        """Set the title or the metadata, which is merged: null removes a name."""
        query = given(agent=agent, user_id=user_id, thread_id=thread_id)
        body = given(title=title, metadata=metadata)
        return Call("PATCH", "conversations/transcript/", query, body)

    @pages
    def transcript(
        self,
        *,
        agent: str,
        user_id: str,
        thread_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Turn]]:
        """List every turn, oldest first; without a thread, those of all threads of the user.

        Args:
            filters: values of the metadata, as in `messages.list`.
        """
        return listing(
            "conversations/transcript/", agent=agent, user_id=user_id, thread_id=thread_id,
            filters=filters, since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip

    @call
    def erase(
        self, *, agent: str, user_id: str, thread_id: str, reason: str | None = None
    ) -> Call[documents.Erasure]:
        """Ask that a conversation be erased. It needs a key with the scope `erase`."""
        query = given(agent=agent, user_id=user_id, thread_id=thread_id, reason=reason)
        return Call("DELETE", "conversations/transcript/", query)

    @pages
    def items(
        self,
        *,
        agent: str,
        user_id: str,
        thread_id: str,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Item]]:
        """List the items of a framework's runs, newest first. A page has at most 50."""
        return listing(
            "conversations/items/", agent=agent, user_id=user_id, thread_id=thread_id,
            ordering=ordering, limit=limit,
        )  # fmt: skip

    @call
    def add_items(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        agent: str,
        user_id: str,
        thread_id: str,
        idempotency_key: str | None = None,
    ) -> Call[None]:
        """Add up to 1,000 items, to be kept as they are.

        Each is an object with `item`; and, if that is to be remembered, with `said`, which has
        `role` and `content`.
        """
        body = {
            "agent": agent, "user_id": user_id, "thread_id": thread_id,
            "items": [dict(each) for each in items],
        }  # fmt: skip
        return Call("POST", "conversations/items/", body=body, headers=once(idempotency_key))

    @call
    def remove_item(self, item_id: str, *, idempotency_key: str | None = None) -> Call[None]:
        """Remove an item. Its text stays in the transcript."""
        path = f"conversations/items/{segment(item_id)}/"
        return Call("DELETE", path, headers=once(idempotency_key))

    @call
    def clear_items(self, *, agent: str, user_id: str, thread_id: str) -> Call[None]:
        """Remove all items of a conversation. Their texts stay in the transcript."""
        query = given(agent=agent, user_id=user_id, thread_id=thread_id)
        return Call("DELETE", "conversations/items/", query)


class Windows(Resource[S]):
    """The last turns, which an agent is shown with each message."""

    @call
    def get(self, *, agent: str, user_id: str, limit: int | None = None) -> Call[documents.Window]:
        """Get the window of a user, oldest turn first."""
        return Call("GET", "windows/", given(agent=agent, user_id=user_id, limit=limit))

    @call
    def clear(self, *, agent: str, user_id: str) -> Call[None]:
        """Clear the window. The transcript stays, and its messages can still be recalled."""
        return Call("DELETE", "windows/", given(agent=agent, user_id=user_id))


class Memories(Resource[S]):
    """Messages, found by meaning."""

    @call
    def search(
        self,
        query: str,
        *,
        user_id: str,
        agent: str | None = None,
        top_k: int | None = None,
        gate: bool | None = None,
        mode: Literal["hybrid", "vector"] | None = None,
        preset: Literal["precise", "balanced", "thorough"] | None = None,
        explain: bool | None = None,
        include: Iterable[Literal["messages", "facts"]] | None = None,
        shared: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        at: Moment | None = None,
    ) -> Call[documents.SearchResult]:
        """Search an agent's memories of a user, as its replies do.

        Args:
            agent: by default each agent that knows the user.
            gate: false returns the best `top_k`, however unlikely that they answer the query.
            preset: how sure the search must be; by default the agent's thresholds.
            include: "messages", "facts" or both; by default messages. With facts, the
                answer has `facts` beside `results`.
            shared: false leaves out facts about no user.
            filters: values of the metadata, as in `messages.list`.
            at: search only messages up to this time.
        """
        included = None if include is None else list(include)
        body = given(
            agent=agent, user_id=user_id, query=query, top_k=top_k, gate=gate, mode=mode,
            preset=preset, explain=explain, include=included, shared=shared, filters=filters,
            at=at,
        )  # fmt: skip
        return Call("POST", "memories/search/", body=body)

    @pages
    def recall_events(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        message_id: str | None = None,
        abstained: bool | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.RecallEvent]]:
        """List recalls of replies, newest first."""
        return listing(
            "recall-events/", agent=agent, user_id=user_id, message_id=message_id,
            abstained=abstained, since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip

    @call
    def recall_event(self, event_id: str) -> Call[documents.RecallEventInFull]:
        """Get the recall of a reply: results, omitted results with reasons, and the prompt."""
        return Call("GET", f"recall-events/{segment(event_id)}/")
