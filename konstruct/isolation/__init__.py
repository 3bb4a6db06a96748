"""The proof of isolation: throw-away tenants attack each other in the operator's own deployment."""

from konstruct.isolation.proving import prove
from konstruct.isolation.records import Attempt, Proof, Wall

__all__ = ["Attempt", "Proof", "Wall", "prove"]
