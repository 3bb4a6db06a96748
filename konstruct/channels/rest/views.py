"""The REST channel: programs send messages and read the replies."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.routers import SimpleRouter

from konstruct.api.auth.authentication import Caller
from konstruct.api.http import lists, problems, schema, views
from konstruct.api.models import KeyScope
from konstruct.api.resources.people import erasures
from konstruct.channels.rest import history_import, responses
from konstruct.channels.rest.serializers import (
    MessageSerializer,
    SendSerializer,
    ToolResultsSerializer,
    WaitForSerializer,
    WaitSerializer,
)
from konstruct.orchestrator import builder, language_models, models, replies, tool_calls
from konstruct.orchestrator.exceptions import MessageNotFound
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.context import tokens
from memory.facts.rows import echoes_of_message
from memory.models import Message
from memory.tasks import embed_and_store
from tenants import context, transaction
from tenants.audit.models import Action
from tenants.jobs import enqueue_task

CHANNEL = "rest"
Document = Callable[[Message], dict[str, Any]]
# A stream waits at most this long for a reply.
STREAM_SECONDS = 180
INTERRUPTED = problems.Problem(
    503,
    "reply-interrupted",
    "The reply was interrupted, and is generated again: get it at the url of the message.",
)


class MessageFilter(lists.ThreadFilter, lists.TimeRangeFilter, lists.MetadataFilter):
    """Filters of the list."""

    status = lists.ChoiceFilter(
        "Only messages with this status.",
        [status.value for status in replies.Status],
        method="of_status",
    )

    def of_status(self, rows: QuerySet[Message], name: str, value: str) -> QuerySet[Message]:
        """Filter by the status."""
        return replies.with_status(rows, replies.Status(value))


class MessageViewSet(history_import.ImportViewSet):
    """Messages of end users to agents."""

    queryset = Message.objects.all()
    serializer_class = MessageSerializer
    filterset_class = MessageFilter
    ordering = ("-created_at", "-number")
    ordering_fields = ("created_at",)
    allows_bound_keys = True
    content_negotiation_class = responses.JsonOrEvents

    @views.operation(
        Action.SEND,
        permission="memory.add_message",
        query=WaitForSerializer,
        body=SendSerializer,
        own_transaction=True,
        id="send_message",
        returns={200: MessageSerializer, 202: MessageSerializer, (200, responses.MEDIA_TYPE): str},
        errors=(402, 404, 409),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Any:
        """Send a message to an agent.

        The message is stored, and a worker answers it. Poll `url` for the reply, or pass `wait` to
        get it in this response if it is ready in time, also from a person who has to answer. With
        `wait_for=indexed` the response comes when recall can find the message, and `indexed` says
        whether it can. A message that waits for consent or for a program's tools is a 200
        immediately, without a reply: `waits_for` has the reason and the next step.

        With `Accept: text/event-stream` the response is a stream of server-sent events, for at most
        180 seconds or `wait`: `accepted` with the message, `text` with `{"text": "…"}` for each
        piece of the reply as the language model writes it, and last either `message` with the final
        message and its `reply`, or `error` with a problem. The reply is stored even if the client
        closes the stream.
        """
        wait, streams = float(self.query.get("wait", 0)), responses.wants_events(request)
        waits_for_index = wait > 0 and self.query.get("wait_for") == "indexed"
        fields = self.fields
        agent = self.caller.agent(fields["agent"], active=True)
        instructions = [fields["instructions"]] if "instructions" in fields else []
        if instructions:
            limit, refusal = builder.max_instruction_tokens(agent.model_tier), ""
            if self.caller.is_bound:
                refusal = "A key that is bound to a user or an agent sends none."
            elif not agent.accepts_client_instructions:
                refusal = "This agent accepts no instructions of programs."
            elif tokens.count_up_to(instructions[0], limit) > limit:
                refusal = f"This agent takes at most {limit:,} tokens of them."
            if refusal:
                raise exceptions.ValidationError({"instructions": refusal})
        options = fields["options"]
        option = tool_calls.option_needing_model(options)
        if option and not language_models.has_language_model(agent):
            refusal = "No language model is configured here to follow it."
            path = "options.response_format" if option == "response_format" else option
            raise exceptions.ValidationError({path: refusal})
        incoming = Incoming(
            agent_id=agent.id,
            user_id=self.caller.user(fields["user_id"]),
            thread_id=fields.get("thread_id", fields["user_id"]),
            channel=CHANNEL,
            content=fields["content"],
            name=fields.get("name", ""),
            metadata=fields.get("metadata"),
            idempotency_key=self.idempotency.key,
            options=models.AnswerOptions(options=options, instructions=instructions),
        )
        tenant_id = context.required_tenant_id()
        with transaction.atomic():
            if streams:  # before the task is enqueued
                transaction.on_commit(lambda: replies.watch(tenant_id, message.id))
            message, created = accept(incoming, tenant_id=tenant_id)
            if waits_for_index:
                ids = [str(message.id)]
                transaction.on_commit(partial(enqueue_task, embed_and_store, str(tenant_id), ids))
            self.log(message, action=None if created else Action.VIEW)
            self.write_log_entry()
        url = reverse("message-detail", args=[message.id], request=request)

        def document(now: Message) -> dict[str, Any]:
            waiting = responses.wait_conditions([now], request)
            return responses.message_document(now, agent.name, url, waiting)

        return self._respond(message, document, is_new=created, waits_for_index=waits_for_index)

    @action(detail=True, methods=["post"], url_path="tool-results")
    @views.operation(
        Action.EDIT,
        permission="memory.add_message",
        query=WaitSerializer,
        body=ToolResultsSerializer,
        own_transaction=True,
        returns={200: MessageSerializer, 202: MessageSerializer, (200, responses.MEDIA_TYPE): str},
        errors=(409,),
        headers=[schema.LOCATION],
    )
    def send_tool_results(self, request: Request, message_id: UUID) -> Any:
        """Send the results of your program's tools.

        Give the results of all calls for which the message waits (`waits_for`). The language model
        continues with them: it answers, or calls tools again. The response is that of sending a
        message, also with `wait` and as a stream. The same results again change nothing.
        """
        tenant_id = context.required_tenant_id()
        with transaction.atomic():
            message = _message(message_id, self.caller)
            if responses.wants_events(request):  # before the task is enqueued
                transaction.on_commit(partial(replies.watch, tenant_id, message_id))
            by = f"{self.caller.name}, by the API"
            is_new = tool_calls.answer_calls(message, self.fields["results"], by=by)
            self.log(message, action=None if is_new else Action.VIEW)
            self.write_log_entry()
            message = _message(message_id, self.caller)

        def document(now: Message) -> dict[str, Any]:
            return responses.message_documents([now], request)[0]

        return self._respond(message, document, is_new=False)

    def _respond(
        self, message: Message, document: Document, *, is_new: bool, waits_for_index: bool = False
    ) -> Any:
        """Return the response about a message: at once, after the wait, or as a stream.

        Args:
            message: the message.
            document: makes the JSON of its current state.
            is_new: whether the message has just been stored, so that it need not be read again.
            waits_for_index: whether the wait is for its index.
        """
        wait, caller = float(self.query.get("wait", 0)), self.caller
        if responses.wants_events(self.request):
            return self._stream(message, document, wait or STREAM_SECONDS)

        def respond(now: Message) -> Response:
            body = document(now)
            is_settled = wait and body["status"] != replies.Status.QUEUED
            return Response(
                body, status=200 if is_settled else 202, headers={"Location": body["url"]}
            )

        def read_and_respond() -> Response:
            return respond(_message(message.id, caller))

        if is_new and not wait:
            return respond(message)
        if waits_for_index:
            return responses.respond_when_indexed(self, [message.id], wait, read_and_respond)
        return responses.respond_when_settled(self, message.id, wait, read_and_respond)

    def _stream(self, message: Message, document: Document, seconds: float) -> HttpResponse:
        caller, request = self.caller, self.request

        def end(sent: str) -> bytes:
            now = document(_message(message.id, caller))
            is_broken = bool(sent) and now["status"] == replies.Status.QUEUED
            return fail(INTERRUPTED) if is_broken else responses.event(now, "message")

        def fail(problem: problems.Problem) -> bytes:
            document = problem.as_json(path=request.path, request_id=problems.current_request_id())
            return responses.event(document, "error")

        return responses.stream_events(
            self,
            message.id,
            seconds,
            opening=responses.event(document(message), "accepted"),
            piece=lambda text: responses.event({"text": text}, "text"),
            end=end,
            fail=fail,
        )

    @views.operation(Action.LIST)
    def list(self, request: Request) -> Response:
        """List messages, newest first.

        Returns every message that was sent, on any channel, with its reply.
        """
        messages = self.filter_queryset(self.caller.rows(replies.sent_messages()))
        page = self.paginate_queryset(messages) or []
        return self.get_paginated_response(responses.message_documents(page, request))

    @views.operation(Action.VIEW, scope=(KeyScope.READ, KeyScope.WRITE), query=WaitSerializer)
    def retrieve(self, request: Request, message_id: UUID) -> Response:
        """Get a message and its reply.

        Returns the status of the message. With `wait`, the response comes with the reply of the
        agent or a person, when the message fails or waits for consent or a program (see
        `waits_for`), or after the given seconds.
        """
        caller = self.caller

        def respond() -> Response:
            message = _message(message_id, caller)
            self.log(message)
            return Response(responses.message_documents([message], request)[0])

        return responses.respond_when_settled(
            self, message_id, float(self.query.get("wait", 0)), respond
        )

    @views.operation(
        Action.ERASE,
        permission=erasures.ERASE,
        query=erasures.EraseMessageQuery,
        id="erase_message",
        returns={202: erasures.ErasureSerializer},
        headers=[schema.LOCATION],
    )
    def destroy(self, request: Request, message_id: UUID) -> Response:
        """Erase a message.

        Erases a message (sent, imported or a reply) with its reply, the memories of both, and the
        facts with this `message_id` in their metadata. A background process does this: `Location`
        has the progress and the receipt. This cannot be undone. The other messages of the
        conversation are kept. If only the reply is erased, its message has the status `failed`.
        """
        message = self.get_object()
        quoting = echoes_of_message(message) if self.query.get("quotes") else []
        reply_ids = self.get_queryset().filter(pk__in=[reply.pk for reply in quoting])
        return erasures.erase_messages(
            self,
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            message_id=message.pk,
            reply_ids=reply_ids.values_list("pk", flat=True),
            reason=self.query.get("reason", ""),
        )


router = SimpleRouter(use_regex_path=False)
router.register("messages", MessageViewSet, "message")


def _message(message_id: UUID, caller: Caller) -> Message:
    message = caller.rows(replies.sent_messages()).filter(pk=message_id).first()
    if message is None:
        # After a wait too: it may have been erased.
        raise MessageNotFound(f"There is no message '{message_id}' that this caller may see.")
    return message
