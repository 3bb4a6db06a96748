"""URLs of the channels that call us, on the public hosts alone."""

from django.urls import path

from konstruct.channels import slack

urlpatterns = [
    path("slack/events/", slack.events, name="slack-events"),
    path("slack/interactions/", slack.interactions, name="slack-interactions"),
    path("slack/oauth/", slack.oauth, name="slack-oauth"),
]
