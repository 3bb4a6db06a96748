"""Reads checkpoints in pages: first their names and sizes, then their values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from memory.context.checkpoints.checkpointer import TenantPostgresSaver

READ_BATCH_BYTES = 4_000_000
# The rows of a page first, so that only their values are measured. Postgres knows the length of a
# value without reading it.
_SIZES_SQL = """
    SELECT checkpoint_id, thread_id, checkpoint_ns,
        octet_length(checkpoint::text) + octet_length(metadata::text) + coalesce((
            SELECT sum(octet_length(blob))
            FROM jsonb_each_text(checkpoint -> 'channel_versions') AS used
            JOIN checkpoint_blobs AS value ON value.thread_id = page.thread_id
                AND value.checkpoint_ns = page.checkpoint_ns
                AND value.channel = used.key AND value.version = used.value
        ), 0)::bigint + coalesce((
            SELECT sum(octet_length(blob)) FROM checkpoint_writes AS written
            WHERE written.thread_id = page.thread_id
                AND written.checkpoint_ns = page.checkpoint_ns
                AND written.checkpoint_id = page.checkpoint_id
        ), 0)::bigint AS bytes
    FROM (
        SELECT * FROM checkpoints {where}
        ORDER BY checkpoint_id {order}, thread_id {order}, checkpoint_ns {order} LIMIT %s
    ) AS page
    ORDER BY checkpoint_id {order}, thread_id {order}, checkpoint_ns {order}
"""
_NAME = ("checkpoint_id", "thread_id", "checkpoint_ns")
_NAMED = """
    WHERE (checkpoint_id, thread_id, checkpoint_ns)
        IN (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]))
"""


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """The name of a checkpoint, and its size in bytes with its values and pending writes."""

    checkpoint_id: str
    thread_id: str
    checkpoint_ns: str
    bytes: int


class PagedSaver(TenantPostgresSaver):
    """Reads checkpoints of a tenant in pages: first their names, then some of them."""

    def list_saved(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        after: Sequence[str] | None = None,
        backwards: bool = False,
        limit: int,
    ) -> list[SavedCheckpoint]:
        """Return the checkpoints that `list` would yield, newest first; with `backwards` oldest
        first.

        Args:
            after: only those after this one in that order: its checkpoint_id, thread_id and
                checkpoint_ns.
        """
        where, params = self._search_where(config, filter, before)
        if after is not None:
            order = ">" if backwards else "<"
            beyond = f"(checkpoint_id, thread_id, checkpoint_ns) {order} (%s, %s, %s)"
            where = f"{where} AND {beyond}" if where else f"WHERE {beyond}"
            params += after
        sql = _SIZES_SQL.format(where=where, order="ASC" if backwards else "DESC")
        with self._cursor() as cursor:
            cursor.execute(cast("Any", sql), [*params, limit])
            return [SavedCheckpoint(**row) for row in cursor.fetchall()]

    def read(self, names: Sequence[SavedCheckpoint]) -> Iterator[CheckpointTuple]:
        """Yield these checkpoints in this order, without those that were deleted meanwhile.

        They are read in groups of up to READ_BATCH_BYTES bytes.
        """
        saver = _NamedSaver(self.tenant_id, serde=self.serde)
        sizes = zip(accumulate(saved.bytes for saved in names), names, strict=True)
        for _, batch in groupby(sizes, lambda item: item[0] // READ_BATCH_BYTES):
            saver.names = [
                (saved.checkpoint_id, saved.thread_id, saved.checkpoint_ns) for _, saved in batch
            ]
            checkpoints = {
                tuple(checkpoint.config["configurable"][column] for column in _NAME): checkpoint
                for checkpoint in saver.list(None)
            }
            for name in saver.names:
                if name in checkpoints:
                    yield checkpoints.pop(name)


class _NamedSaver(TenantPostgresSaver):
    """Lists the checkpoints with these names."""

    names: Sequence[tuple[str, str, str]]

    def _search_where(self, *args: Any) -> tuple[str, list[Any]]:
        arrays = [[*column] for column in zip(*self.names, strict=True)]
        return _NAMED, arrays
