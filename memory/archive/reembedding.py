"""Bring an archive's messages from the models that embedded them to another one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from memory.archive.sqlite_manager import SQLiteManager
from memory.archive.vector_store import VectorStore

# Messages in one transaction: what is embedded again after a kill.
BATCH = 256

_OTHER_MODELS = """
SELECT DISTINCT e.model_version FROM embeddings e JOIN messages m ON m.embedding_id = e.id
WHERE e.model_version < :version OR e.model_version > :version
"""
# IS NOT: a message without a vector is one of no model.
_STALE = """
SELECT m.position, m.id, m.content, m.embedding_id
FROM messages m LEFT JOIN embeddings e ON e.id = m.embedding_id
WHERE e.model_version IS NOT :version AND m.position BETWEEN :first AND :last
ORDER BY m.position LIMIT :batch
"""
_END = 2**63 - 1


def other_models(file: SQLiteManager, version: str) -> str:
    """The models other than `version` that messages were embedded by; empty if there are none."""
    return ", ".join(repr(other) for (other,) in file.rows(_OTHER_MODELS, {"version": version}))


def reembed(
    file: SQLiteManager,
    vectors: VectorStore,
    encode: Callable[[Sequence[str]], np.ndarray[Any, Any]],
    version: str,
) -> int:
    """Give each message that has no vector by model `version` one, and return how many did not.

    A message without any text gets none.
    """
    done = 0
    scope = {"version": version, "first": 0, "last": _END, "batch": BATCH}
    while batch := file.rows(_STALE, scope):
        texts = {id: content for _, id, content, _ in batch if content.strip()}
        embedded = dict(zip(texts, encode(list(texts.values())), strict=True))
        last = batch[-1][0]
        with file.transaction() as connection:
            # Others may have deleted or embedded some while we were embedding.
            stale = file.rows(_STALE, {**scope, "last": last})
            worded = [id for _, id, _, _ in stale if id in embedded]
            stored = vectors.store_batch([embedded[id] for id in worded], model_version=version)
            connection.executemany(
                "UPDATE messages SET embedding_id = ? WHERE id = ?",
                zip(stored, worded, strict=True),
            )
            connection.executemany(
                "DELETE FROM embeddings WHERE id = ?",
                ((old,) for _, _, _, old in stale if old is not None),
            )
        done += len(worded)
        scope["first"] = last + 1
    return done
