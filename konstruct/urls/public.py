"""URLs of the public host: the operators' admin, and where key or workspace decide the tenant."""

from django.urls import path

from konstruct.channels.slack import views as slack
from konstruct.urls import urls_with
from tenants.admin.sites import operator_site

handler500 = "tenants.http.server_error"
urlpatterns = [
    path("channels/slack/events/", slack.events, name="slack-events"),
    path("channels/slack/interactions/", slack.interactions, name="slack-interactions"),
    path("channels/slack/oauth/", slack.oauth, name="slack-oauth"),
    *urls_with(operator_site),
]
