"""URLs of OpenAI's interface."""

from django.urls import path, re_path

from konstruct.interfaces.openai.views import ChatCompletionsView, ModelsView, ModelView, unknown

urlpatterns = [
    path("v1/chat/completions", ChatCompletionsView.as_view(), name="chat-completions"),
    path("v1/models", ModelsView.as_view(), name="models"),
    path("v1/models/<path:model>", ModelView.as_view(), name="model"),
    re_path(r"^v1/", unknown),
]
