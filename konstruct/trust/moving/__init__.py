"""Moving what was said as one user to another, when an identity was linked. As the owner."""

from konstruct.trust.moving.moving import carry_out, carry_out_requested

__all__ = ["carry_out", "carry_out_requested"]
