"""Facts, and the runs that extract them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from konstruct_client import documents
from konstruct_client._calls import Call, Page, given, listing, matching, once, segment, tagged
from konstruct_client._methods import Resource, S, call, pages
from konstruct_client.resources.messages import ByTime, Moment

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack


FactState = Literal["proposed", "active", "superseded", "retracted", "rejected"]


class Facts(Resource[S]):
    """Facts about a user, of one agent or of all. A fact keeps its versions."""

    @call
    def create(
        self,
        content: str,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        external_id: str | None = None,
        slot: str | None = None,
        subject: str | None = None,
        value: str | None = None,
        is_multi_valued: bool | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        expires_at: Moment | None = None,
        idempotency_key: str | None = None,
    ) -> Call[documents.StoredFact]:
        """Keep a fact. The same text of the same agent and user is the same fact.

        Args:
            external_id: your own id. A fact of the same agent and user with it is changed.
            agent: who knows it; by default all agents do.
            user_id: the user that it is about; by default no user.
            metadata: metadata for search filters.
            slot, subject, value: the attribute that the fact states, of whom, and its value. It
                supersedes the slot's current value.
            is_multi_valued: other values of the slot stay valid.
            valid_from, valid_to: since when it is so, and until when.
            expires_at: from then on it is not found any more.
        """
        body = given(
            agent=agent, user_id=user_id, content=content, metadata=metadata,
            external_id=external_id, slot=slot, subject=subject, value=value,
            is_multi_valued=is_multi_valued, valid_from=valid_from, valid_to=valid_to,
            expires_at=expires_at,
        )  # fmt: skip
        return Call("POST", "facts/", body=body, headers=once(idempotency_key))

    @call
    def create_many(self, facts: Iterable[Mapping[str, Any]]) -> Call[documents.StoredFacts]:
        """Keep up to 100 facts in one request: all of them, or none.

        Args:
            facts: each with `content` and the other arguments of `create`.
        """
        return Call("POST", "facts/batch/", body={"facts": [dict(each) for each in facts]})

    @call
    def change_many(self, facts: Iterable[Mapping[str, Any]]) -> Call[documents.ChangedFacts]:
        """Change up to 100 facts in one request: all of them, or none.

        Args:
            facts: each with `memory_id` and the fields of `change`.
        """
        body = {"facts": [dict(each) for each in facts]}
        return Call("PATCH", "facts/batch/", body=body, repeatable=False)

    @call
    def delete_many(self, memory_ids: Iterable[str]) -> Call[None]:
        """Delete up to 100 facts with all their versions, for good: all of them, or none."""
        body = {"memory_ids": [*memory_ids]}
        return Call("POST", "facts/batch/delete/", body=body, repeatable=False)

    @call
    def put(
        self,
        external_id: str,
        content: str,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        slot: str | None = None,
        subject: str | None = None,
        value: str | None = None,
        is_multi_valued: bool | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        expires_at: Moment | None = None,
    ) -> Call[documents.StoredFact]:
        """Store or change the fact with your id. Without a change there is no new version.

        The arguments are those of `create`.
        """
        body = given(
            content=content, metadata=metadata, slot=slot, subject=subject, value=value,
            is_multi_valued=is_multi_valued, valid_from=valid_from, valid_to=valid_to,
            expires_at=expires_at,
        )  # fmt: skip
        return Call("PUT", _path_of(external_id), given(agent=agent, user_id=user_id), body)

    @call
    def delete_by_external_id(
        self, external_id: str, *, agent: str | None = None, user_id: str | None = None
    ) -> Call[None]:
        """Delete the fact with your id, for good."""
        return Call("DELETE", _path_of(external_id), given(agent=agent, user_id=user_id))

    @call
    def get(self, memory_id: str, *, at: Moment | None = None) -> Call[documents.FactInFull]:
        """Get a fact with its evidence, as it is, or as it was at a moment."""
        return Call("GET", _path(memory_id), given(at=at))

    @call
    def get_tagged(self, memory_id: str) -> Call[tuple[documents.FactInFull, str]]:
        """Get a fact and its ETag, for `if_match`."""
        return Call("GET", _path(memory_id), parse=tagged)

    @call
    def change(
        self, memory_id: str, *, if_match: str | None = None, **fields: Unpack[documents.FactChange]
    ) -> Call[documents.FactInFull]:
        """Change a fact. The previous text is kept as a version.

        Args:
            if_match: the ETag that you have read. Raises `ChangedSince` if it has changed.
        """
        headers = matching(if_match)
        return Call("PATCH", _path(memory_id), body=fields, headers=headers, repeatable=False)

    @call
    def delete(self, memory_id: str, *, if_match: str | None = None) -> Call[None]:
        """Delete a fact with all its versions, for good."""
        return Call("DELETE", _path(memory_id), headers=matching(if_match))

    @pages
    def history(self, memory_id: str, *, limit: int | None = None) -> Call[Page[documents.Fact]]:
        """List the versions of a fact, newest first."""
        return listing(f"{_path(memory_id)}history/", limit=limit)

    @pages
    def events(
        self, memory_id: str, *, limit: int | None = None
    ) -> Call[Page[documents.FactEvent]]:
        """List the changes of a fact's state with their authors, newest first."""
        return listing(f"{_path(memory_id)}events/", limit=limit)

    @pages
    def replies(
        self, memory_id: str, *, limit: int | None = None
    ) -> Call[Page[documents.RecallEvent]]:
        """List the recall events of the replies that used a fact, newest first."""
        return listing(f"{_path(memory_id)}replies/", limit=limit)

    @call
    def confirm(
        self, memory_id: str, *, reason: str | None = None, if_match: str | None = None
    ) -> Call[documents.FactInFull]:
        """Confirm a proposed fact: it becomes active.

        An `OwnProposal` if the key, or another one of the same person, proposed it.
        """
        return _decision(memory_id, "confirm", reason, if_match)

    @call
    def reject(
        self, memory_id: str, *, reason: str | None = None, if_match: str | None = None
    ) -> Call[documents.FactInFull]:
        """Reject a proposed fact: it is not proposed again from the same messages."""
        return _decision(memory_id, "reject", reason, if_match)

    @call
    def retract(
        self, memory_id: str, *, reason: str | None = None, if_match: str | None = None
    ) -> Call[documents.FactInFull]:
        """Retract a fact that was wrong: agents no longer use it."""
        return _decision(memory_id, "retract", reason, if_match)

    @call
    def restore(
        self, memory_id: str, *, reason: str | None = None, if_match: str | None = None
    ) -> Call[documents.FactInFull]:
        """Undo a rejection, a retraction or a supersession.

        A `SlotTaken` if the fact's slot has another value by now.
        """
        return _decision(memory_id, "restore", reason, if_match)

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        at: Moment | None = None,
        state: FactState | None = None,
        slot: str | None = None,
        shared: bool | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Fact]]:
        """List facts, newest first.

        Args:
            filters: values of the metadata.
            state: the facts in this state; by default active facts that are valid.
            slot: only facts of this slot, such as `home_city`.
            shared: False leaves out facts about no user.
        """
        return listing(
            "facts/", agent=agent, user_id=user_id, filters=filters, at=at, state=state, slot=slot,
            shared=shared, ordering=ordering, limit=limit,
        )  # fmt: skip

    @call
    def search(
        self,
        query: str,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        shared_only: bool | None = None,
        shared: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        at: Moment | None = None,
        limit: int | None = None,
        threshold: float | None = None,
    ) -> Call[documents.FactSearchResult]:
        """Search facts by meaning, best first.

        Args:
            shared_only: only facts about no user.
            shared: False leaves out facts about no user.
            filters: values of the metadata: `{"topic": "food"}`, `{"year": {"gte": 2020}}`.
            limit: at most so many results, 100 at most.
            threshold: least cosine similarity.
        """
        body = given(
            query=query, agent=agent, user_id=user_id, shared_only=shared_only, shared=shared,
            filters=filters, at=at, limit=limit, threshold=threshold,
        )  # fmt: skip
        return Call("POST", "facts/search/", body=body)


ExtractionState = Literal["queued", "failed", "processed"]
RunState = Literal["running", "preview", "applied", "failed", "rolled_back"]


class ExtractionRuns(Resource[S]):
    """Requests for the facts of a part of a conversation, with their results."""

    @call
    def preview(
        self, *, agent: str, user_id: str, thread_id: str, model: str | None = None
    ) -> Call[documents.ExtractionRunInFull]:
        """Ask for the facts of a conversation's new messages. No fact changes.

        Args:
            model: the language model; by default the agent's.
        """
        body = given(agent=agent, user_id=user_id, thread_id=thread_id, model=model)
        return Call("POST", "extraction-runs/", body=body, repeatable=False)

    @call
    def get(self, run_id: str) -> Call[documents.ExtractionRunInFull]:
        """Get a run with its candidates and the answer of the language model."""
        return Call("GET", _run_path(run_id))

    @call
    def replay(
        self, run_id: str, *, model: str | None = None
    ) -> Call[documents.ExtractionRunInFull]:
        """Preview the input of a run again, such as with another language model."""
        return Call(
            "POST", f"{_run_path(run_id)}replay/", body=given(model=model), repeatable=False
        )

    @call
    def compare(self, run_id: str, other: str) -> Call[documents.Comparison]:
        """Compare the accepted candidates of two runs."""
        return Call("GET", f"{_run_path(run_id)}comparison/", given(other=other))

    @call
    def apply(self, run_id: str) -> Call[documents.ExtractionRunInFull]:
        """Record the facts of a preview."""
        return Call("POST", f"{_run_path(run_id)}apply/", repeatable=False)

    @call
    def roll_back(self, run_id: str) -> Call[documents.ExtractionRunInFull]:
        """Remove the facts of a run, and restore what they superseded."""
        return Call("POST", f"{_run_path(run_id)}roll-back/", repeatable=False)

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        state: RunState | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        ordering: ByTime | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.ExtractionRun]]:
        """List runs, newest first."""
        return listing(
            "extraction-runs/", agent=agent, user_id=user_id, thread_id=thread_id, state=state,
            since=since, until=until, ordering=ordering, limit=limit,
        )  # fmt: skip


class Extractions(Resource[S]):
    """Conversations from which facts are extracted, with how far they are processed."""

    @pages
    def list(
        self,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        thread_id: str | None = None,
        state: ExtractionState | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.Extraction]]:
        """List conversations with the progress of their extraction."""
        return listing(
            "extractions/", agent=agent, user_id=user_id, thread_id=thread_id, state=state,
            limit=limit,
        )  # fmt: skip

    @call
    def retry(self, extraction_id: str) -> Call[documents.Extraction]:
        """Retry an extraction that has failed."""
        return Call("POST", f"extractions/{segment(extraction_id)}/retry/", repeatable=False)


def _run_path(run_id: str) -> str:
    return f"extraction-runs/{segment(run_id)}/"


def _decision(
    memory_id: str, decision: str, reason: str | None, if_match: str | None
) -> Call[documents.FactInFull]:
    return Call(
        "POST",
        f"{_path(memory_id)}{decision}/",
        body=given(reason=reason),
        headers=matching(if_match),
        repeatable=False,
    )


def _path_of(external_id: str) -> str:
    return f"facts/by-external-id/{segment(external_id)}/"


def _path(memory_id: str) -> str:
    return f"facts/{segment(memory_id)}/"
