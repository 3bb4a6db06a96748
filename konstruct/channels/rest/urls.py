"""URLs of the REST channel."""

from django.urls import path

from konstruct.channels.rest.history_import import ImportView
from konstruct.channels.rest.views import MessagesView, MessageView

urlpatterns = [
    path("messages/", MessagesView.as_view(), name="messages"),
    path("messages/import/", ImportView.as_view(), name="import"),
    path("messages/<uuid:message_id>/", MessageView.as_view(), name="message"),
]
