"""Creates tenants, lets each attack the next one, and deletes them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from secrets import token_hex

from django.test import override_settings

from tenants.context import public_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tenants.servers import servers
from tests import database
from tests.konstruct.isolation import by_http, by_sql, by_stores
from tests.konstruct.isolation.attempts import Attempt, Proof
from tests.konstruct.isolation.fixtures import TenantFixture, populate

NAME = "Attacker and victim"
Attack = Callable[[TenantFixture, TenantFixture], Iterator[Attempt]]
ATTACKS: Sequence[Attack] = (by_sql.attack, by_stores.attack, by_http.attack)


def prove(
    tenants: int = 2, *, before: Callable[[Sequence[TenantFixture]], None] = lambda fixtures: None
) -> Proof:
    """Attack every layer between tenants as `konstruct_app`.

    Args:
        tenants: the number of tenants on each server, at least two. Each attacks the next one on
            its server, and the first ones of the servers attack each other.
        before: called as the owner with the populated tenants, to break a layer.
    """
    proof = Proof()
    with public_scope():
        logging.disable(logging.WARNING)  # each request that is refused would be a line
        try:
            # With tenants on several servers, the main one is closed.
            with database.as_owner(), override_settings(TENANT_DATABASES_CLOSED=[]):
                created = [
                    provisioning.create_tenant(
                        slug=f"proof-{token_hex(6)}", name=NAME, server=server
                    )
                    for server in servers()
                    for _ in range(tenants)
                ]
            fixtures = [populate(tenant) for tenant in created]
            with database.as_owner():
                before(fixtures)
            groups = [fixtures[at : at + tenants] for at in range(0, len(fixtures), tenants)]
            if len(groups) > 1:
                groups.append([group[0] for group in groups])
            for group in groups:
                for attacker, victim in zip(group, group[1:] + group[:1], strict=True):
                    for attack in ATTACKS:
                        proof.attempts += attack(attacker, victim)
        finally:
            logging.disable(logging.NOTSET)
            with database.as_owner():
                for tenant in Tenant.objects.filter(name=NAME):
                    provisioning.delete_tenant(tenant)
    return proof
