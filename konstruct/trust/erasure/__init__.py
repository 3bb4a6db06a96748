"""Erasing a person, and what is older than it may be: from every store, with a receipt."""

from konstruct.trust.erasure.erasing import carry_out, carry_out_requested

__all__ = ["carry_out", "carry_out_requested"]
