"""The API's description of itself, as OpenAPI and as a page."""

from django.urls import path
from drf_spectacular.views import SpectacularSwaggerSplitView

from konstruct.api.http.description import DescriptionView

urlpatterns = [
    path("schema/", DescriptionView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
