"""Moves what was said as one user to another, after an identity is linked. As the owner."""

from konstruct.trust.history_merge.merging import carry_out, carry_out_requested

__all__ = ["carry_out", "carry_out_requested"]
