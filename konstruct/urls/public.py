"""URLs of the public host: the operators' admin, and where key or workspace decide the tenant."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from tenants.admin.sites import operator_site

admin.autodiscover()  # before the sites tell their URLs

handler500 = "tenants.http.refusals.server_error"
urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", operator_site.urls),
    path("api/", include("konstruct.urls.api")),
    path("channels/", include("konstruct.channels.urls")),
    path("health/", include("konstruct.api.health")),
    path("", include("konstruct.urls.interfaces")),
]
