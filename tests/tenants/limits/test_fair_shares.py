"""Fair shares of slots: half of the free ones for a tenant, and a reserve for the others."""

from uuid import UUID, uuid4

import pytest

from tenants.limits.fair_shares import FairShares

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)


def take_slots(shares: FairShares, tenant: UUID) -> int:
    """Take slots for the tenant until it gets no more. Return their number."""
    count = 0
    while shares.enter(tenant):
        count += 1
    return count


@pytest.mark.parametrize(
    ("slots", "reserve", "share"), [(100, 10, 45), (500, 50, 225), (10, 0, 5), (3, 0, 1), (1, 0, 1)]
)
def test_one_tenant_alone_gets_half_of_the_slots_less_the_reserve(
    slots: int, reserve: int, share: int
) -> None:
    shares = FairShares(slots, reserve)
    assert take_slots(shares, A) == share
    assert shares.tenants_at_limit() == {A}
    assert shares.in_flight() == share


def test_each_further_tenant_gets_half_of_the_remaining_slots() -> None:
    shares = FairShares(100, 10)
    assert [take_slots(shares, tenant) for tenant in (A, B, C)] == [45, 22, 11]


def test_a_tenant_that_has_none_always_gets_a_slot_while_one_is_free() -> None:
    shares = FairShares(100, 10)
    others = [uuid4() for _ in range(8)]
    # Ends as above.
    for _ in range(100):
        for tenant in others:
            take_slots(shares, tenant)
            shares.leave(tenant)
    newcomers = [uuid4() for _ in range(100 - shares.in_flight())]
    assert len(newcomers) > 10
    assert all(shares.enter(tenant) for tenant in newcomers)
    assert shares.is_full()
    assert not shares.enter(uuid4())
    shares.leave(newcomers[0])
    assert not shares.is_full()
    assert newcomers[0] not in shares.tenants_at_limit()
    assert shares.tenants_at_limit() == {*others, *newcomers[1:]}


def test_a_reserve_of_all_slots_leaves_each_tenant_one() -> None:
    shares = FairShares(3, 10)
    assert [take_slots(shares, tenant) for tenant in (A, B, C)] == [1, 1, 1]
