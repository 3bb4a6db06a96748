"""Versions of agents by REST: each change, and the return to an earlier one."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import OptionalTextField, StrictSerializer
from konstruct.api.http.lists import ByNumber, PageQuerySerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.api.resources.agents.agents import ETAG, AgentSerializer
from konstruct.orchestrator.agents import restore_agent
from konstruct.orchestrator.models import Agent, AgentVersion
from tenants.audit.changes import row_state
from tenants.audit.models import Action


def _help(name: str) -> str:
    return str(AgentVersion._meta.get_field(name).help_text)  # type: ignore[union-attr]  # no relation


class AgentVersionSerializer(serializers.Serializer):
    """The settings of an agent after a change."""

    number = serializers.IntegerField(help_text=_help("number"))
    settings = serializers.DictField(
        child=serializers.JSONField(allow_null=True), help_text=_help("settings")
    )
    changed = serializers.ListField(child=serializers.CharField(), help_text=_help("changed"))
    restores = serializers.IntegerField(allow_null=True, help_text=_help("restores"))
    note = serializers.CharField(allow_blank=True, help_text=_help("note"))
    author = serializers.CharField(help_text=_help("author"))
    author_name = serializers.CharField(allow_blank=True, help_text=_help("author_name"))
    created_at = serializers.DateTimeField(help_text=_help("created_at"))


class RestorationSerializer(StrictSerializer):
    """The note on a restored version."""

    note = OptionalTextField(help_text=_help("note"))


@route("agents/<uuid:agent_id>/versions/", name="agent-versions")
class AgentVersionsView(ApiView):
    """The versions of an agent. Bound keys have no access."""

    @operation(
        Action.LIST,
        "versions of an agent",
        permission="orchestrator.view_agent",
        query=PageQuerySerializer,
        id="list_agent_versions",
        page=AgentVersionSerializer,
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """List the versions of an agent, the newest first.

        Each change of an agent by the API or the admin creates a version with all settings, the
        author and the changed fields. An agent without changes since versions were introduced has
        none.
        """
        agent = get_object_or_404(Agent.objects.only("pk"), pk=agent_id)
        rows = AgentVersion.objects.filter(agent_id=agent.pk)
        return self.page(rows, ByNumber(), AgentVersionSerializer)


@route("agents/<uuid:agent_id>/versions/<int:number>/restore/", name="restore-agent")
class AgentRestorationView(ApiView):
    """The return to a version."""

    @operation(
        Action.EDIT,
        "agent",
        permission="orchestrator.change_agent",
        body=RestorationSerializer,
        id="restore_agent",
        returns=AgentSerializer,
        errors=(402, 409, 422),
        headers=[ETAG],
    )
    def post(self, request: Request, agent_id: UUID, number: int) -> Response:
        """Restore a version of an agent.

        Applies the settings of the version to the agent, and creates a new version. Settings that
        did not exist at the time of the version are unchanged.
        """
        agent = get_object_or_404(Agent.objects.select_for_update(), pk=agent_id)
        before = row_state(agent)
        restore_agent(agent, number, author=self.caller.author, note=self.fields.get("note", ""))
        agent = Agent.objects.get(pk=agent_id)
        return self.changed(agent, before, AgentSerializer, with_etag=True, restored=number)
