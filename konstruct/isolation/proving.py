"""Prove isolation: create tenants, let each attack the next one, and delete them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dj_database_url
from django.conf import settings
from django.db import connections

from konstruct.isolation.attacks import ATTACKS
from konstruct.isolation.attempts import Attempt, Proof
from konstruct.isolation.catalogue import check_catalogues
from konstruct.isolation.fixtures import TenantFixture, delete_tenants, make_tenants, populate
from memory.context.checkpoints.connections import close_pools
from tenants.context import public_scope
from tenants.servers import MAIN, servers

Attack = Callable[[TenantFixture, TenantFixture], Iterator[Attempt]]


def prove(
    tenants: int = 2,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    before: Callable[[Sequence[TenantFixture]], None] | None = None,
) -> Proof:
    """Check the catalogue and attack every layer between throw-away tenants, as `konstruct_app`.

    Needs the owner's role. It deletes the tenants, also those of a proof that was killed.

    Args:
        tenants: the number of tenants on each server, at least two. Each attacks the next one on
            its server, and the first ones of the servers attack each other.
        attacks: functions that take the attacker and the victim and yield attempts.
        before: called with the populated tenants before the attacks. Tests break a layer there.

    Returns:
        The attempts with their outcomes.
    """
    proof = Proof()
    with public_scope():
        delete_tenants()
        logging.disable(logging.WARNING)  # each request that is refused would be a line
        try:
            created = make_tenants(tenants)
            with as_application():
                fixtures = [populate(tenant) for tenant in created]
            if before is not None:
                before(fixtures)
            groups = [fixtures[at : at + tenants] for at in range(0, len(fixtures), tenants)]
            if len(groups) > 1:
                groups.append([group[0] for group in groups])
            with as_application():
                proof.attempts += check_catalogues()
                for group in groups:
                    for attacker, victim in zip(group, group[1:] + group[:1], strict=True):
                        for attack in attacks:
                            proof.attempts += attack(attacker, victim)
        finally:
            logging.disable(logging.NOTSET)
            delete_tenants()
    return proof


@contextmanager
def as_application() -> Iterator[None]:
    """Run the block on connections of `konstruct_app` to the same databases."""
    owners = {server: connections[server] for server in servers()}
    urls = {MAIN: settings.APPLICATION_DATABASE_URL, **settings.TENANT_DATABASES}
    for server, connection in owners.items():
        database = dj_database_url.parse(urls[server])
        application = connection.copy()
        application.settings_dict.update(
            {
                name: database.get(name, {})
                for name in ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
            }
        )
        connections[server] = application
    try:
        yield
    finally:
        close_pools()
        for server, connection in owners.items():
            connections[server].close()
            connections[server] = connection
