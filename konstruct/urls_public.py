"""URLs of the public host: the operators' admin, and the API where the key decides the tenant."""

from django.urls import include, path
from django.views.generic import RedirectView

from tenants.sites import operator_site

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", operator_site.urls),
    path("api/", include("konstruct.urls_api")),
    path("health/", include("konstruct.api.health_urls")),
]
