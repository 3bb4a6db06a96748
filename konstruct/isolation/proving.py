"""Proving isolation: make tenants, let each attack the next by every way, and remove them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from konstruct.isolation import by_http, by_sql, by_stores
from konstruct.isolation.configuration import check_configuration
from konstruct.isolation.connecting import as_application
from konstruct.isolation.fixtures import Party, make_tenants, populate, remove_left_over
from konstruct.isolation.records import Proof
from tenants.context import public_scope
from tenants.models import Tenant

WAYS = (by_sql, by_stores, by_http)


def prove(tenants: int = 2, *, before: Callable[[Sequence[Tenant]], None] | None = None) -> Proof:
    """Attack every wall between throw-away tenants, as the application's role.

    A process with the owner's role does this: it makes and removes the tenants, also those that a
    proof which was killed has left.

    Args:
        tenants: how many on each server, at least two; each attacks the next one there. The first
            ones of the servers attack each other by what all servers share.
        before: called with the tenants before the attacks begin; tests remove a wall there.
    """
    proof = Proof()
    with public_scope():
        remove_left_over()
        try:
            made = make_tenants(tenants)
            with as_application():
                populated = [populate(tenant) for tenant in made]
            if before is not None:
                before(made)
            with as_application():
                proof.attempts += check_configuration()
                for attacker, victim, ways in _pairs(populated, tenants):
                    for way in ways:
                        proof.attempts += way.attack(attacker, victim)
        finally:
            remove_left_over()
    return proof


def _pairs(parties: list[Party], on_each: int) -> Iterator[tuple[Party, Party, Sequence[Any]]]:
    """Who attacks whom, and by which ways."""
    groups = [parties[at : at + on_each] for at in range(0, len(parties), on_each)]
    for group in groups:
        for attacker, victim in zip(group, group[1:] + group[:1], strict=True):
            yield attacker, victim, WAYS
    first = [group[0] for group in groups]
    if len(first) > 1:
        for attacker, victim in zip(first, first[1:] + first[:1], strict=True):
            yield attacker, victim, (by_stores, by_http)
