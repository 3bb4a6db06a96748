"""Messages and threads as the pipeline has them, whatever the channel, and the locks of threads."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from konstruct.orchestrator.exceptions import Busy
from tenants.context import required_tenant_id
from tenants.locking.polling import poll
from tenants.locking.tenant_locks import held_lock, held_of

# An erasure or a move of a long conversation holds the window for seconds.
WINDOW_SECONDS = 60.0
ASKED_FOR_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of an agent with a user: the agent is the thread's own, its address."""

    agent_id: UUID
    user_id: str
    thread_id: str

    @classmethod
    def of(cls, row: "KonstructMessage | Message | Escalation") -> "Thread":
        """The thread of a message, or of an escalation."""
        return cls(row.agent_id, row.user_id, row.thread_id)

    @property
    def named(self) -> dict[str, UUID | str]:
        """For filters."""
        return {"agent_id": self.agent_id, "user_id": self.user_id, "thread_id": self.thread_id}


@dataclass(frozen=True, slots=True)
class KonstructMessage:
    """An accepted message of an end user, as the pipeline hands it from step to step.

    `user_id` and `thread_id` are the channel's own ids. `name` is the speaker's display name, as in
    the OpenAI message format, or "" where the channel knows none.
    """

    id: UUID
    tenant_id: UUID
    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    created_at: datetime | None = None


def konstruct_message(row: "Message") -> KonstructMessage:
    """Return the pipeline's form of a transcript row."""
    return KonstructMessage(
        id=row.id,
        tenant_id=row.tenant_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        thread_id=row.thread_id,
        channel=row.channel,
        content=row.content,
        name=row.name,
        created_at=row.created_at,
    )


# --- Locks ----------------------------------------------------------------------------------------


def thread_lock(thread: Thread) -> AbstractContextManager[bool]:
    """Hold the thread; gives False at once if another worker holds it."""
    return held_lock(_key("konstruct.thread", thread, thread.thread_id))


def wait_for_threads(threads: Iterable[Thread]) -> None:
    """Return when the workers that answer in these threads, if any, are done.

    Raises Busy if one of them is not when its task's time must be over.
    """
    keys = iter([_key("konstruct.thread", thread, thread.thread_id) for thread in threads])
    while batch := list(islice(keys, ASKED_FOR_AT_ONCE)):

        def none_is_held(batch: list[str] = batch) -> bool:
            batch[:] = held_of(batch)  # who was free once is not waited for again
            return not batch

        if not poll(none_is_held, seconds=settings.CELERY_TASK_TIME_LIMIT):
            raise Busy(f"{len(batch)} conversations are still being answered.")


@contextmanager
def window_lock(thread: Thread) -> Iterator[None]:
    """Hold the window of the thread's agent and user, waiting for who holds it.

    That is mostly for milliseconds. Threads of one user are answered side by side and share a
    window. Inside, a reply is recorded and appended in one go, so that the window has the
    transcript's order. Taken inside of a thread's lock, never around one. Raises Busy after
    WINDOW_SECONDS.
    """
    key = _key("konstruct.window", thread)
    with ExitStack() as stack:

        def take() -> bool:
            return stack.enter_context(held_lock(key))

        if not poll(take, seconds=WINDOW_SECONDS):
            raise Busy(
                f"Somebody else has been at work on this conversation for {WINDOW_SECONDS:g}"
                " seconds."
            )
        yield


def _key(purpose: str, thread: Thread, *more: str) -> str:
    # Lengths keep apart what a separator alone would not: ids are any text that a channel makes.
    parts = [str(required_tenant_id()), str(thread.agent_id), thread.user_id, *more]
    return "\x1f".join([purpose, *(f"{len(part)}:{part}" for part in parts)])


if TYPE_CHECKING:
    from konstruct.orchestrator.models import Escalation
    from memory.models import Message
