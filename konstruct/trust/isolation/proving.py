"""Proving isolation: make tenants, let each attack the next by every way, and remove them."""

from collections.abc import Callable, Sequence

from konstruct.trust.isolation import by_http, by_sql, by_stores
from konstruct.trust.isolation.configuration import check_configuration
from konstruct.trust.isolation.connecting import as_application
from konstruct.trust.isolation.fixtures import furnish, make_tenants, remove_left_over
from konstruct.trust.isolation.records import Proof
from tenants.context import public_scope
from tenants.models import Tenant

WAYS = (by_sql, by_stores, by_http)


def prove(tenants: int = 2, *, before: Callable[[Sequence[Tenant]], None] | None = None) -> Proof:
    """Attack every wall between throw-away tenants, as the application's role.

    A process with the owner's role does this: it makes and removes the tenants, also those that a
    proof which was killed has left.

    Args:
        tenants: how many, at least two; each attacks the next.
        before: called with the tenants before the attacks begin; tests remove a wall there.
    """
    proof = Proof()
    with public_scope():
        remove_left_over()
        try:
            made = make_tenants(tenants)
            with as_application():
                furnished = [furnish(tenant) for tenant in made]
            if before is not None:
                before(made)
            with as_application():
                proof.attempts += check_configuration()
                for attacker, victim in zip(furnished, furnished[1:] + furnished[:1], strict=True):
                    for way in WAYS:
                        proof.attempts += way.attack(attacker, victim)
        finally:
            remove_left_over()
    return proof
