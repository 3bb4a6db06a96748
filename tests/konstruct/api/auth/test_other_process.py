"""A change here applies to the next request of another running web process."""

import httpx
import pytest

from konstruct.api.auth.keys import revoke_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import MESSAGES, Program


@pytest.mark.django_db(transaction=True)
def test_next_request_sees_changes_of_another_process(served_url: str, program_a: Program) -> None:
    tenant_id = program_a.tenant.id
    headers = {"Authorization": f"Bearer {program_a.key}"}
    with httpx.Client(base_url=served_url, headers=headers) as client:

        def status(agent: str = "ada") -> int:
            return client.get(MESSAGES, params={"agent": agent}).status_code

        assert (status(), status("grace")) == (200, 422)
        with tenant_scope(tenant_id):
            Agent.objects.filter(name="ada").update(name="grace")
        assert (status(), status("grace")) == (422, 200)
        Tenant.objects.filter(pk=tenant_id).update(state=Tenant.State.SUSPENDED)
        assert status("grace") == 403
        Tenant.objects.filter(pk=tenant_id).update(state=Tenant.State.ACTIVE)
        assert status("grace") == 200
        with tenant_scope(tenant_id):
            revoke_key(ApiKey.objects.get().pk)
        assert status("grace") == 401
