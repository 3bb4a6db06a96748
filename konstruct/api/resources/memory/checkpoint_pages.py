"""Pages of checkpoints, bounded by what is in them."""

from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING

from konstruct.api.http.errors.problems import Problem, Refusal
from konstruct.api.http.lists.pagination import KeysetPagination, Position

if TYPE_CHECKING:
    from memory.context.checkpoints.pages import SavedCheckpoint

# A page ends before its checkpoints have more bytes than this, but not before the first of them.
PAGE_BYTES = 4_000_000
# No answer has more: it stands in memory until it is sent, in base64.
MOST_BYTES = 24_000_000


class NewestCheckpointsFirst(KeysetPagination):
    """Checkpoints by their ids, which grow with time; those of copied threads have the same.

    Args:
        is_counted: whether the caller has said how many a page has, and gets so many or an error.
    """

    orderings = {"-checkpoint_id": ("-checkpoint_id", "-thread_id", "-checkpoint_ns")}

    def __init__(self, *, is_counted: bool) -> None:
        self.is_counted = is_counted

    def rows_after(
        self,
        queryset: "Callable[..., list[SavedCheckpoint]]",
        position: Position | None,
        *,
        backwards: bool,
    ) -> "list[SavedCheckpoint]":
        """Return one checkpoint more than a page holds, and let it hold as many as fit."""
        rows = queryset(after=position, backwards=backwards, limit=self.limit + 1)
        sizes = [*accumulate(row.bytes for row in rows[: self.limit])]
        if sizes and sizes[0] > MOST_BYTES:
            raise _too_large(f"checkpoint {rows[0].checkpoint_id} has {sizes[0]:,}")
        if not self.is_counted:
            self.limit = max(1, sum(size <= PAGE_BYTES for size in sizes))
        elif sizes and sizes[-1] > MOST_BYTES:
            raise _too_large(
                f"these {len(sizes)} checkpoints have {sizes[-1]:,}:"
                " leave `limit` out, and follow `next`"
            )
        return rows


def _too_large(what: str) -> Refusal:
    return Refusal(
        Problem.of_status(
            422, f"An answer has {MOST_BYTES:,} bytes of checkpoints at most, {what}."
        )
    )
