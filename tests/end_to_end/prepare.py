"""Create tenants, each with an agent, keys and an admin, in one process. Print them as JSON.

python -m tests.end_to_end.prepare SLUG[@SERVER]...

AGENT_ID in the environment is the id of the agent of each tenant. By default each has a different
one.
"""

import json
import os
import sys
from uuid import UUID, uuid4


def main() -> None:
    """Create the tenants of the command line, as the owner."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from tenants.context import tenant_scope
    from tenants.schemas.provisioning import create_tenant

    prepared = []
    for argument in sys.argv[1:]:
        slug, _, server = argument.partition("@")
        tenant = create_tenant(slug=slug, server=server)
        agent = create_agent(
            tenant_id=tenant.id, name="ada", id=UUID(os.environ.get("AGENT_ID") or uuid4().hex)
        )
        _, key = issue_key(tenant_id=tenant.id, name="tests")
        _, eraser = issue_key(tenant_id=tenant.id, name="erasures", scopes=["erase"])
        with tenant_scope(tenant.id):
            get_user_model().objects.create_superuser("eva", password="pw")
        prepared.append(
            {
                "slug": slug,
                "id": str(tenant.id),
                "agent_id": str(agent.id),
                "key": str(key),
                "eraser": str(eraser),
            }
        )
    sys.stdout.write(json.dumps(prepared))


if __name__ == "__main__":
    main()
