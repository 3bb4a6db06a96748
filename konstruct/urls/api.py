"""URLs below /api/: the description, and version 1 of every resource."""

from django.urls import include, path
from drf_spectacular.views import SpectacularSwaggerSplitView

from konstruct.api.urls import DescriptionView
from konstruct.channels.rest import coding_agents, events, views

urlpatterns = [
    path("schema/", DescriptionView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("v1/", include(views.router.urls)),
    path("v1/", include(coding_agents.urlpatterns)),
    path("v1/", include(events.urlpatterns)),
    path("v1/", include("konstruct.api.urls")),
]
