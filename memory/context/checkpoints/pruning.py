"""Which checkpoints of a thread go when only the newest are kept. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """What the choice needs to know of a checkpoint."""

    namespace: str
    checkpoint_id: str
    # The checkpoint of the root graph that the run of this (sub)graph started from.
    root_id: str | None = None
    # The parent whose pending sends this one is read with: only in LangGraph's formats before 4.
    sends_parent_id: str | None = None


def superfluous(rows: Iterable[CheckpointRow], keep: int) -> dict[str, set[str]]:
    """The checkpoint ids of each namespace that go when its newest `keep` stay.

    A subgraph's namespace (with a task id after a colon) exists for one step of the root graph: it
    goes with the root's checkpoint that it started from, but not while that one is still to be
    saved, for a run saves in the background and the subgraph's may come first.
    """
    namespaces: dict[str, list[CheckpointRow]] = defaultdict(list)
    for row in rows:
        namespaces[row.namespace].append(row)
    roots = {row.checkpoint_id for row in namespaces.get("", [])}
    kept_roots = _newest(namespaces.get("", []), keep)
    going: dict[str, set[str]] = {}
    for namespace, members in namespaces.items():
        latest = max(members, key=lambda row: row.checkpoint_id)
        if ":" in namespace and latest.root_id in roots - kept_roots:
            kept = set()
        else:
            kept = _newest(members, keep)
        if gone := {row.checkpoint_id for row in members} - kept:
            going[namespace] = gone
    return going


def _newest(rows: list[CheckpointRow], keep: int) -> set[str]:
    """The newest ids (they grow with time), and the parents that those cannot be read without."""
    newest = sorted(rows, key=lambda row: row.checkpoint_id, reverse=True)[:keep]
    ids = {row.checkpoint_id for row in newest}
    return ids | {row.sends_parent_id for row in newest if row.sends_parent_id}
