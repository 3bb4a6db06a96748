"""What the owner's worker does for tenants leaves alone those that have no schema yet."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from konstruct.trust import history_merge
from konstruct.trust.erasure import carry_out_requested
from konstruct.trust.erasure.retention import apply_all
from tenants.models import Tenant


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("job", [history_merge.carry_out_requested, carry_out_requested, apply_all])
def test_a_tenant_that_never_served_is_passed_over(
    as_owner: Callable[[], AbstractContextManager[None]],
    tenant_a: Tenant,
    caplog: pytest.LogCaptureFixture,
    job: Callable[[], int],
) -> None:
    Tenant.objects.create(slug="never-served", name="has no schema")
    with as_owner(), caplog.at_level(logging.WARNING):
        assert job() == 0
    assert caplog.records == []
