"""URLs of a tenant's host: its admin and its API."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from tenants.admin.sites import tenant_site

admin.autodiscover()  # before the sites tell their URLs

handler500 = "tenants.http.server_error"
urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/language/", set_language, name="set_language"),
    path("admin/", tenant_site.urls),
    path("api/", include("konstruct.urls.api")),
    path("health/", include("konstruct.api.health")),
    path("", include("konstruct.urls.interfaces")),
]
