"""URLs of a tenant's host: its admin and its API."""

from django.urls import include, path
from django.views.generic import RedirectView

from tenants.sites import tenant_site

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", tenant_site.urls),
    path("api/", include("konstruct.api.urls")),
    path("health/", include("konstruct.api.health_urls")),
]
handler404 = "konstruct.api.exceptions.not_found"
handler500 = "konstruct.api.exceptions.server_error"
