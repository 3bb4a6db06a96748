"""What tests ask of the outbox."""

from uuid import UUID

from tenants import outbox


def claimed(kind: outbox.Kind) -> list[UUID]:
    """Claim all that is due of the kind, as workers do; the keys, in the order of the turns."""
    found = []
    while (claim := outbox.claim(kind)) is not None:
        found.append(claim.key)
    return found
