"""URLs below /api/: the description, and version 1 of every resource."""

from django.urls import include, path
from drf_spectacular.views import SpectacularSwaggerSplitView

from konstruct.api.http.description import DescriptionView
from konstruct.channels.rest.history_import import ImportView
from konstruct.channels.rest.views import MessagesView, MessageView

urlpatterns = [
    path("schema/", DescriptionView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("v1/messages/", MessagesView.as_view(), name="messages"),
    path("v1/messages/import/", ImportView.as_view(), name="import"),
    path("v1/messages/<uuid:message_id>/", MessageView.as_view(), name="message"),
    path("v1/", include("konstruct.api.urls")),
]
