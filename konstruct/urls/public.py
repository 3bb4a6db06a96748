"""URLs of the public host: the operators' admin, and where key or workspace decide the tenant."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from konstruct.channels.slack import views as slack
from tenants.admin.sites import operator_site

admin.autodiscover()  # before the sites tell their URLs

handler500 = "tenants.http.server_error"
urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/language/", set_language, name="set_language"),
    path("admin/", operator_site.urls),
    path("api/", include("konstruct.urls.api")),
    path("channels/slack/events/", slack.events, name="slack-events"),
    path("channels/slack/interactions/", slack.interactions, name="slack-interactions"),
    path("channels/slack/oauth/", slack.oauth, name="slack-oauth"),
    path("health/", include("konstruct.api.health")),
    path("", include("konstruct.urls.interfaces")),
]
