"""Erases a person in every store, with a receipt."""

from konstruct.privacy.erasure.erasing import carry_out

__all__ = ["carry_out"]
