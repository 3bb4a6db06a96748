"""URL configurations of tenants' hosts and public hosts, and their common part."""

from typing import Any

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language


def urls_with(site: admin.AdminSite) -> list[Any]:
    """Return the URLs of a host with the admin of this site: pages, API, health and interfaces."""
    admin.autodiscover()  # before the site tells its URLs
    return [
        path("", RedirectView.as_view(url="/admin/")),
        path("admin/language/", set_language, name="set_language"),
        path("admin/", site.urls),
        path("api/", include("konstruct.urls.api")),
        path("health/", include("konstruct.api.health")),
        path("", include("konstruct.urls.interfaces")),
    ]
