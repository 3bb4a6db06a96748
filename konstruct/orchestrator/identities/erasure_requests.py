"""Asking for the erasure of a person: who that is, and that nobody else is meant."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from konstruct.audit.access_log import Actor
from konstruct.audit.erasure_requests import request_erasure
from konstruct.audit.models import ErasureRequest
from konstruct.orchestrator.identities.linked_ids import linked_ids
from konstruct.orchestrator.identities.person_threads import threads_of
from tenants.exceptions import KonstructError


class ThreadOfOthers(KonstructError):
    """A thread that was named for an erasure is not the person's alone."""


def ask_for_erasure(
    user_id: str,
    *,
    by: Actor,
    agent_id: UUID | None = None,
    threads: Sequence[str] = (),
    reason: str = "",
    request_id: str = "",
    by_bound_key: bool = False,
    **detail: Any,
) -> ErasureRequest:
    """Note that a person, with all ids that are linked to this one, is to be forgotten.

    Args:
        agent_id: the one agent that is to forget; by default all of them.
        threads: sessions of graphs that are theirs, which neither the transcript nor their own
            metadata say.
        by_bound_key: a key of one agent or one user asks: its word makes no session theirs.
        detail: what else the access log is to have of it.

    Raises:
        ThreadOfOthers: somebody else spoke in one of these threads, or its session is another's.
        AlreadyRequested: the same is asked for already, and not done yet.
    """
    if threads:
        _refuse_threads_of_others(
            linked_ids(user_id), threads, agent_id=agent_id, by_bound_key=by_bound_key
        )
    return request_erasure(
        user_id,
        by=by,
        agent_id=agent_id,
        threads=threads,
        reason=reason,
        request_id=request_id,
        by_bound_key=by_bound_key,
        **detail,
    )


def _refuse_threads_of_others(
    user_ids: Sequence[str],
    threads: Sequence[str],
    *,
    agent_id: UUID | None,
    by_bound_key: bool,
) -> None:
    """Raise ThreadOfOthers unless each of these threads is the person's, or nobody's else."""
    wrong = [
        thread.thread_id
        for thread in threads_of(user_ids, agent_id=agent_id, named=threads)
        if thread.asked_for and not thread.session_is_theirs(strict=by_bound_key)
    ]
    if wrong:
        listed = ", ".join(repr(thread) for thread in wrong[:5])
        raise ThreadOfOthers(
            f"Not of {user_ids[0]!r} alone: {listed}. Nothing was noted; leave these threads out."
        )
