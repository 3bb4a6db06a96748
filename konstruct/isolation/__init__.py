"""The proof of isolation: throw-away tenants attack each other in the operator's own deployment."""

from konstruct.isolation.attempts import Attempt, Layer, Proof
from konstruct.isolation.proving import prove

__all__ = ["Attempt", "Layer", "Proof", "prove"]
