"""URLs of the resources below /api/v1/."""

from django.urls import path

from konstruct.api.memories import MemorySearchView
from konstruct.api.usage import UsageView

urlpatterns = [
    path("memories/search/", MemorySearchView.as_view(), name="search-memories"),
    path("usage/", UsageView.as_view(), name="usage"),
]
