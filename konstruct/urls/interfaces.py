"""URLs of interfaces of other products, on the hosts of tenants and on the public ones."""

from django.urls import include, path

urlpatterns = [
    path("", include("konstruct.interfaces.mcp.urls")),
    path("", include("konstruct.interfaces.openai.urls")),
    path("mem0/", include("konstruct.interfaces.mem0.urls")),
]
