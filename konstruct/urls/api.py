"""URLs below /api/: the description, and version 1 of every resource."""

from django.urls import include, path

urlpatterns = [
    path("", include("konstruct.api.urls")),
    path("v1/", include("konstruct.channels.rest.urls")),
    path("v1/", include("konstruct.api.resources.urls")),
]
