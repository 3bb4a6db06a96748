"""Moves what was said as one user to another, after an identity is linked. As the owner."""

from konstruct.privacy.merge.merging import carry_out

__all__ = ["carry_out"]
