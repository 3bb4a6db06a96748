"""Pages of checkpoints: which there are and how large, before any of their values is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from memory.context.checkpoints.checkpointer import TenantPostgresSaver

# The rows of a page first, so that only these are measured. A value's length is known to Postgres
# without the value.
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
    """Name of a checkpoint, and how many bytes it has with its values and pending writes."""

    checkpoint_id: str
    thread_id: str
    checkpoint_ns: str
    bytes: int


class PagedSaver(TenantPostgresSaver):
    """Reads checkpoints of a tenant in pages: looks which there are, then reads some of them."""

    def saved(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        after: Sequence[str] | None = None,
        backwards: bool = False,
        limit: int,
    ) -> list[SavedCheckpoint]:
        """Return which checkpoints `list` would yield, the newest first; `backwards` the oldest.

        Args:
            after: only those that come after this one in that order: its checkpoint_id, thread_id
                and checkpoint_ns.
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

    def named(self, names: Sequence[SavedCheckpoint]) -> list[CheckpointTuple]:
        """Read these checkpoints, in this order; what is deleted since is left out."""
        if not names:
            return []
        saver = _NamedSaver(self.tenant_id, serde=self.serde)
        saver.names = [(each.checkpoint_id, each.thread_id, each.checkpoint_ns) for each in names]
        found = {
            tuple(each.config["configurable"][column] for column in _NAME): each
            for each in saver.list(None)
        }
        return [found[name] for name in saver.names if name in found]


class _NamedSaver(TenantPostgresSaver):
    """Lists the checkpoints that have these names."""

    names: Sequence[tuple[str, str, str]]

    def _search_where(self, *args: Any) -> tuple[str, list[Any]]:
        arrays = [[*column] for column in zip(*self.names, strict=True)]
        return _NAMED, arrays
