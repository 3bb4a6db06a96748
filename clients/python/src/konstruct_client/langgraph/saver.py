"""A checkpointer: the states of graphs that run here are sessions there."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from konstruct_client import documents
from konstruct_client.client import Client
from konstruct_client.errors import NotFound


class KonstructSaver(BaseCheckpointSaver[str]):
    """For `graph.compile(checkpointer=KonstructSaver(client))`, with `invoke` and with `ainvoke`.

    Its threads are the tenant's sessions, beside those of graphs that run with the server. Objects
    of classes that the server does not allow are refused when they are saved: keep plain data and
    messages in the state, or have the operators name the class. A key that is bound to a user or an
    agent is refused.

    Args:
        serde: how values are written, such as LangGraph's `EncryptedSerializer`.
    """

    def __init__(self, client: Client, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(pickle_fallback=False))
        self._checkpoints, self._sessions = client.checkpoints, client.sessions

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after this one. The ordinary ones of LangGraph's own servers."""
        number = int(str(current or 0).split(".", maxsplit=1)[0]) + 1
        return f"{number:032}.{random.random():016}"  # noqa: S311  (no secret)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, by default the thread's newest."""
        place = {"checkpoint_ns": "", **config["configurable"]}
        found = self.list({"configurable": place}, limit=1)
        return next(found, None)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        place = config["configurable"] if config else {}
        found = self._found(
            thread_id=place.get("thread_id"),
            checkpoint_ns=place.get("checkpoint_ns"),
            checkpoint_id=get_checkpoint_id(config) if config else None,
            before=get_checkpoint_id(before) if before else None,
            filters=filter,
            limit=1 if limit == 1 else None,
        )
        yield from map(self._tuple, islice(found, limit))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, with the values that are new."""
        place = config["configurable"]
        state = cast("dict[str, Any]", checkpoint.copy())
        values = state.pop("channel_values")
        state.pop("pending_sends", None)  # of formats before the fourth
        versions = state["channel_versions"]
        new = [
            name
            for name, value in values.items()
            # Those that another saver keeps with the checkpoint itself come with each.
            if name in versions and (name in new_versions or _is_plain(value))
        ]
        self._checkpoints.save(
            thread_id=place["thread_id"],
            checkpoint_ns=place.get("checkpoint_ns", ""),
            parent_checkpoint_id=get_checkpoint_id(config),
            checkpoint=state,
            values=[self._encoded(name, values[name]) for name in new],
            metadata=get_serializable_checkpoint_metadata(config, metadata),
        )
        return _config(place["thread_id"], place.get("checkpoint_ns", ""), checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save a task's writes since a checkpoint."""
        place = config["configurable"]
        self._checkpoints.save_writes(
            thread_id=place["thread_id"],
            checkpoint_ns=place.get("checkpoint_ns", ""),
            checkpoint_id=place["checkpoint_id"],
            task_id=task_id,
            task_path=task_path,
            writes=[self._encoded(channel, value) for channel, value in writes],
        )

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        try:
            self._sessions.clear(thread_id)
        except NotFound:
            return  # there is nothing

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, by default the thread's newest."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, with the values that are new."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save a task's writes since a checkpoint."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    def _found(self, *, before: str | None, **wanted: Any) -> Iterator[documents.Checkpoint]:
        """All checkpoints, page by page."""
        # Ends: each page has older checkpoints than the one before, and an empty one is the last.
        while True:
            last = None
            for last in self._checkpoints.list(before=before, **wanted):
                yield last
            if last is None:
                return
            # Servers before the first with `next` give one page: ask on until there are no more.
            before = last["checkpoint_id"]

    def _encoded(self, channel: str, value: Any) -> documents.ChannelValue:
        type_, data = self.serde.dumps_typed(value)
        return {"channel": channel, "type": type_, "value": base64.b64encode(data).decode()}

    def _decoded(self, value: Any) -> Any:
        return self.serde.loads_typed((value["type"], base64.b64decode(value["value"])))

    def _tuple(self, found: documents.Checkpoint) -> CheckpointTuple:
        thread_id, namespace = found["thread_id"], found["checkpoint_ns"]
        parent = found["parent_checkpoint_id"]
        values = {each["channel"]: self._decoded(each) for each in found["values"]}
        return CheckpointTuple(
            config=_config(thread_id, namespace, found["checkpoint_id"]),
            checkpoint=cast("Checkpoint", {**found["checkpoint"], "channel_values": values}),
            metadata=cast("CheckpointMetadata", found["metadata"]),
            parent_config=_config(thread_id, namespace, parent) if parent else None,
            pending_writes=[
                (each["task_id"], each["channel"], self._decoded(each))
                for each in found["pending_writes"]
            ],
        )


def _config(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    place = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return {"configurable": place}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
