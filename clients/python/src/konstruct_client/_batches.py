"""Imports of any number of messages, all of which must be valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from konstruct_client.client import AsyncClient
from konstruct_client.errors import KonstructError

MAX_LINES = 1_000


async def import_all(
    konstruct: AsyncClient, lines: Sequence[Mapping[str, Any]], **target: Any
) -> None:
    """Import messages, batch by batch.

    Raises:
        KonstructError: one of them is invalid; the others are imported.
    """
    for start in range(0, len(lines), MAX_LINES):
        batch = lines[start : start + MAX_LINES]
        answer = await konstruct.messages.import_history(batch, **target)
        if answer["invalid"]:
            wrong = next(each for each in answer["results"] if each["status"] == "invalid")
            raise KonstructError(
                f"{answer['invalid']} of {len(batch)} messages could not be imported, first the one"
                f" at {start + wrong['index']}: {wrong['error']}"
            )
