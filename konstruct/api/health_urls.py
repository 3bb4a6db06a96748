"""URLs of health."""

from django.urls import path

from konstruct.api.health import live, ready

urlpatterns = [
    path("live", live, name="health-live"),
    path("ready", ready, name="health-ready"),
]
