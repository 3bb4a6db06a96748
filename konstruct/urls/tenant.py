"""URLs of a tenant's host: its admin and its API."""

from konstruct.urls import urls_with
from tenants.admin.sites import tenant_site

handler500 = "tenants.http.server_error"
urlpatterns = urls_with(tenant_site)
