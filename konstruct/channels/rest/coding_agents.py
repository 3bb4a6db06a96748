"""Coding agents: Anthropic's memory tool, and the HTTP hooks of Claude Code."""

from contextlib import nullcontext

from django.conf import settings
from django.urls import path
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, views
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.usage import admit_memories
from memory import arguments, models
from memory.facts.files import MemoryFiles, MemoryToolError
from tenants import context, transaction
from tenants.audit.models import Action

# By hook: the field with the text to store, and the role of its message.
TEXTS = {
    "UserPromptSubmit": ("prompt", "user"),
    "Stop": ("last_assistant_message", "assistant"),
}


class MemoryToolSerializer(bodies.MemoryOwner):
    """A call of the memory tool."""

    input = bodies.ObjectField(help_text="The `input` of the `tool_use` block, with the command.")


class MemoryToolResult(serializers.Serializer):
    """The result of a call."""

    content = serializers.CharField(help_text="The `content` of the `tool_result` block.")
    is_error = serializers.BooleanField(help_text="Its `is_error`.")


class MemoryToolViewSet(views.ApiViewSet):
    """Anthropic's memory tool."""

    queryset = models.MemoryEntry.objects.all()
    subject = "memory file"
    allows_bound_keys = True

    @views.operation(
        Action.EDIT,
        permission=("memory.view_memoryentry", "memory.add_memoryentry"),
        body=MemoryToolSerializer,
        returns={200: MemoryToolResult},
        errors=(402, 409),
    )
    def run_memory_tool(self, request: Request) -> Response:
        """Run a command of Anthropic's memory tool.

        The files are facts of the agent about the user, with the path as `external_id`. Their
        earlier versions are kept; a deleted file is a retracted fact, which can be restored. The
        key needs the scopes `read` and `write`. An error that the language model has to see is a
        200 with `is_error`.
        """
        caller, command = self.caller, self.fields["input"]
        self.require_read()
        files = MemoryFiles(
            caller.agent(self.fields["agent"]).id,
            caller.user(self.fields["user_id"]),
            caller.author,
        )
        grows = command.get("command") not in ("view", "delete")
        try:
            with transaction.atomic(), admit_memories(1) if grows else nullcontext():
                content, is_error = files.run(command), False
        except MemoryToolError as error:
            content, is_error = str(error), True
            files.changed.clear()
        self.log(action=None if files.changed else Action.VIEW, facts=files.changed)
        return Response({"content": content, "is_error": is_error})


class HookSerializer(serializers.Serializer):
    """A hook of Claude Code. Other fields are ignored."""

    session_id = bodies.ChannelIdField(help_text="The session, which is the conversation.")
    hook_event_name = bodies.StrictCharField(
        max_length=100, help_text="UserPromptSubmit and Stop are stored, others are ignored."
    )
    prompt = bodies.StrictCharField(
        required=False, allow_blank=True, help_text="The user's prompt, of UserPromptSubmit."
    )
    last_assistant_message = bodies.StrictCharField(
        required=False, allow_blank=True, allow_null=True, help_text="The final reply, of Stop."
    )


class HookViewSet(views.ApiViewSet):
    """Hooks of Claude Code."""

    queryset = models.Message.objects.all()
    subject = "message"
    allows_bound_keys = True

    @views.operation(
        Action.IMPORT,
        permission="memory.add_message",
        query=bodies.MemoryOwner,
        body=HookSerializer,
        returns={204: None},
        errors=(402, 409),
    )
    def receive_hook(self, request: Request) -> Response:
        """Receive an HTTP hook of Claude Code.

        Stores prompts and final replies as a conversation of the agent and the user. The response
        is empty, so that nothing is added to a prompt. A text that is longer than a message may be
        is cut.
        """
        caller = self.caller
        agent = caller.agent(self.query["agent"])
        user_id = caller.user(self.query["user_id"])
        field, role = TEXTS.get(self.fields["hook_event_name"], ("", ""))
        text = (self.fields.get(field) or "")[: settings.MAX_MESSAGE_CHARACTERS]
        if not arguments.is_blank(text):
            place = {"agent": str(agent.id), "user_id": user_id}
            place["thread_id"] = self.fields["session_id"]
            line = {**place, "role": role, "content": text}
            [result] = import_history([line], tenant_id=context.required_tenant_id())
            if result.message is None:
                raise exceptions.ValidationError({field: result.error})
            self.log(result.message)
        return Response(status=204)


urlpatterns = [
    path(
        "memory-tool/", MemoryToolViewSet.as_view({"post": "run_memory_tool"}), name="memory-tool"
    ),
    path(
        "claude-code/hooks/",
        HookViewSet.as_view({"post": "receive_hook"}),
        name="claude-code-hooks",
    ),
]
