"""URLs of health."""

from django.urls import path

from konstruct.api.health import ReadyView, live

urlpatterns = [
    path("live", live, name="health-live"),
    path("ready", ReadyView.as_view(), name="health-ready"),
]
