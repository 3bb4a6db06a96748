"""URLs of the channels that call us, on the public hosts alone."""

from django.urls import path

from konstruct.channels.slack import views

urlpatterns = [
    path("slack/events/", views.events, name="slack-events"),
    path("slack/interactions/", views.interactions, name="slack-interactions"),
    path("slack/oauth/", views.oauth, name="slack-oauth"),
]
