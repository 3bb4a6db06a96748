"""Processes: the checks of readiness and the heartbeats, for operators."""

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext

from konstruct.api.health import readiness
from tenants.admin.sites import operator_site
from tenants.audit.operator_log import record_person_action


@operator_site.page("processes/", name="processes", permission="tenants.view_tenant")
def processes(request: HttpRequest) -> HttpResponseBase:
    """List the services and worker processes with their states, as `/health/ready` does."""
    record_person_action(request, "list", "processes")
    return operator_site.render(
        request,
        "konstruct/processes.html",
        title=gettext("Processes"),
        checks=readiness().items(),
    )
