"""tenant_scope: enter, restore, pin; and the async versions."""

import asyncio
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django_tenants.utils import schema_context

from tenants.context import (
    asynchronous,
    connection,
    current_tenant_id,
    public_scope,
    required_tenant_id,
    tenant_scope,
)
from tenants.exceptions import InvalidTenantId, NotInTenant, TenantPinned

A, B = UUID(int=10), UUID(int=11)


def test_outside_there_is_no_tenant() -> None:
    assert current_tenant_id() is None
    assert connection.schema_name == "public"


@pytest.mark.parametrize("given", [A, str(A), A.hex])
def test_a_scope_is_entered_by_id_and_left(given: UUID | str) -> None:
    with tenant_scope(given) as entered:
        assert entered == A
        assert current_tenant_id() == A
        assert connection.schema_name == "t_0000000000000000000000000000000a"
    assert current_tenant_id() is None


def test_code_outside_of_a_tenant_gets_an_error() -> None:
    with tenant_scope(A):
        assert required_tenant_id() == A
    with pytest.raises(NotInTenant, match="outside of any: use tenant_scope"):
        required_tenant_id()


def test_scopes_nest_and_restore_in_order() -> None:
    with tenant_scope(A):
        with public_scope():
            assert current_tenant_id() is None
            with tenant_scope(A):
                assert current_tenant_id() == A
            assert current_tenant_id() is None
        assert current_tenant_id() == A
    with tenant_scope(B):
        assert current_tenant_id() == B


def test_a_scope_is_left_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), tenant_scope(A):
        raise ZeroDivisionError
    assert current_tenant_id() is None
    assert connection.pinned_tenant is None


@pytest.mark.parametrize("given", ["", "acme", "t_" + A.hex + "0", None, 5])
def test_invalid_tenant_id_is_refused_by_value(given: object) -> None:
    with pytest.raises(InvalidTenantId, match=repr(given)), tenant_scope(given):  # type: ignore[arg-type]
        pytest.fail("entered")


def test_a_scope_refuses_every_way_into_another_tenant() -> None:
    message = f"this code serves tenant {A} and cannot enter tenant {B}"
    with tenant_scope(A):
        with pytest.raises(TenantPinned, match=message), tenant_scope(B):
            pytest.fail("entered")
        with pytest.raises(TenantPinned, match=message), schema_context("t_" + B.hex):
            pytest.fail("entered")
        with pytest.raises(TenantPinned, match=message):
            connection.set_schema("t_" + B.hex)
        with public_scope(), pytest.raises(TenantPinned, match=message), tenant_scope(B):
            pytest.fail("entered")
        with tenant_scope(A), pytest.raises(TenantPinned, match=message), tenant_scope(B):
            pytest.fail("entered")
        assert current_tenant_id() == A


def tenant_seen_inside(tenant_id: UUID, *, prefix: str = "") -> str:
    """Return the tenant of the connection."""
    with tenant_scope(tenant_id):
        return f"{prefix}{current_tenant_id()}"


def test_the_twin_is_the_same_function_asynchronously() -> None:
    twin = asynchronous(tenant_seen_inside)
    assert twin.__name__ == "atenant_seen_inside"
    assert twin.__doc__ == "Return the tenant of the connection."
    assert asyncio.run(twin(A, prefix="> ")) == f"> {A}"


def test_concurrent_twins_keep_their_tenants() -> None:
    twin = asynchronous(tenant_seen_inside)
    tenants = [uuid4() for _ in range(20)]

    async def all_together() -> list[str]:
        return await asyncio.gather(*(twin(tenant) for tenant in tenants))

    assert asyncio.run(all_together()) == [str(tenant) for tenant in tenants]


def test_sync_twin_restores_its_tenant() -> None:
    with tenant_scope(A):
        assert async_to_sync(asynchronous(tenant_seen_inside))(A) == str(A)
        with pytest.raises(TenantPinned):
            async_to_sync(asynchronous(tenant_seen_inside))(B)
        assert current_tenant_id() == A
