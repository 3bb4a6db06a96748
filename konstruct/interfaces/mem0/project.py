"""What mem0's projects have beside memories: settings, webhooks, profiles. Here they are empty.

What is asked of them is answered. What would change them is refused with what there is instead.
"""

from typing import Any, ClassVar
from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.interfaces.mem0 import filters
from konstruct.interfaces.mem0.base import Mem0View, not_offered
from konstruct.interfaces.mem0.selection import memories_of
from memory.exceptions import FactNotFound
from tenants.context import required_tenant_id
from tenants.models import Tenant

PROFILES = "profiles. Search a user's memories, or list them."
WEBHOOKS = (
    "webhooks. Memories are there when the answer to a request is, and the access log has who"
    " changed what."
)
SUMMARIES = (
    "summaries. Where a language model is configured, create_memory_export with a schema that asks"
    " for one has it written. Else let one of yours summarise what get_all gives."
)
PROJECTS = "organizations and projects. A tenant's admin has its people and settings."


class EmptyView(Mem0View):
    """Something that can be looked at, and not changed."""

    what: ClassVar[str]

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Say what there is instead of a change."""
        return not_offered(self.what)(request._request)


class ProjectView(EmptyView):
    """The tenant, as organization and project."""

    what = PROJECTS

    def get(self, request: Request, org_id: UUID, project_id: UUID) -> Response:
        """Tell its name. No instructions and categories are kept."""
        tenant_id = required_tenant_id()
        if {org_id, project_id} != {tenant_id}:
            raise NotFound
        wanted = request.query_params.getlist("fields")
        tenant = Tenant.objects.only("name").get(pk=tenant_id)
        document = {
            "id": tenant_id,
            "org_id": tenant_id,
            "project_id": tenant_id,
            "name": tenant.name,
            "custom_instructions": None,
            "custom_categories": None,
        }
        return Response(
            {name: value for name, value in document.items() if not wanted or name in wanted}
        )


class WebhooksView(EmptyView):
    """Webhooks."""

    what = WEBHOOKS

    def get(self, request: Request, project_id: UUID) -> Response:
        """Tell that there are none."""
        if project_id != required_tenant_id():
            raise NotFound
        return Response([])


class ProfileView(EmptyView):
    """The profile of a user."""

    what = PROFILES

    def get(self, request: Request, name: str) -> Response:
        """Tell that nothing writes profiles."""
        of_user = filters.parse({"user_id": {"in": [name]}})
        if not memories_of(self.caller, of_user).exists():
            raise FactNotFound(f"there are no memories of the user {name!r} for this key")
        return Response(
            {
                "status": "not_enabled",
                "profile": None,
                "entity_type": "user",
                "entity_id": name,
                "updated_at": None,
                "generation_count": 0,
            }
        )


class ProfileSettingsView(EmptyView):
    """Whether profiles are written."""

    what = PROFILES

    def get(self, request: Request) -> Response:
        """Tell that they are not."""
        return Response({"enabled": False, "capabilities": {}, "entities": {}})
