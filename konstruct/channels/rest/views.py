"""The REST channel: programs send messages, read the replies, and import history."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework import decorators, exceptions, negotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.routers import SimpleRouter

from konstruct.api.auth.authentication import Caller
from konstruct.api.http import lists, problems, schema, views
from konstruct.api.models import KeyScope
from konstruct.api.resources.people import erasures
from konstruct.channels.rest import responses, serializers
from konstruct.orchestrator import builder, language_models, models, replies, tool_calls
from konstruct.orchestrator.exceptions import MessageNotFound
from konstruct.orchestrator.history_import import lines
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.context import tokens
from memory.conversations.transcript import DerivedIds
from memory.facts.rows import echoes_of_message
from memory.models import Message, PendingEmbedding
from memory.tasks import embed_and_store
from tenants import context, transaction
from tenants.audit.models import Action
from tenants.jobs import enqueue_task

CHANNEL = "rest"
Document = Callable[[Message], dict[str, Any]]
# A stream waits at most this long for a reply.
STREAM_SECONDS = 180
ANSWERS: Any = {
    **dict.fromkeys((200, 202), serializers.MessageSerializer),
    (200, responses.MEDIA_TYPE): str,
}
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


class MessageViewSet(views.ApiViewSet):
    """Messages of end users to agents."""

    queryset = Message.objects.all()
    serializer_class = serializers.MessageSerializer
    subject = "message"
    filterset_class = MessageFilter
    ordering = ("-created_at", "-number")
    ordering_fields = ("created_at",)
    allows_bound_keys = True
    content_negotiation_class = responses.JsonOrEvents

    @views.operation(
        Action.SEND,
        permission="memory.add_message",
        query=serializers.WaitForSerializer,
        body=serializers.SendSerializer,
        own_transaction=True,
        id="send_message",
        returns=ANSWERS,
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

    @decorators.action(detail=True, methods=["post"], url_path="tool-results")
    @views.operation(
        Action.EDIT,
        permission="memory.add_message",
        query=serializers.WaitSerializer,
        body=serializers.ToolResultsSerializer,
        own_transaction=True,
        returns=ANSWERS,
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

    @views.operation(
        Action.VIEW, scope=(KeyScope.READ, KeyScope.WRITE), query=serializers.WaitSerializer
    )
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

    @decorators.action(
        detail=False,
        methods=["post"],
        url_path="import",
        content_negotiation_class=negotiation.DefaultContentNegotiation,
    )
    @views.operation(
        Action.IMPORT,
        "messages",
        permission="memory.add_message",
        query=serializers.WaitSerializer,
        body=serializers.ImportSerializer,
        returns=serializers.ImportResultSerializer,
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY],
    )
    def import_messages(self, request: Request) -> Response:
        """Import history.

        Up to 1000 messages in one request. A message needs role and content; the response has the
        id, thread and time of each. An invalid message does not prevent the import of the others.
        Imported messages get no reply. They are embedded in the background, and `GET
        /api/v1/usage/` returns the number of pending ones.

        Messages are identified by their `external_id`, for each agent and user. A message without
        one gets one, made of its time and text. If it has no time either, the id is made of its
        text, of the texts before it in the request, and of the last message of the thread. So the
        same request, sent again, stores nothing twice, nor does a request with more messages at its
        end, if nothing else was sent in the thread meanwhile. An `Idempotency-Key` takes the place
        of the thread: with a new key the same texts are new messages, with the same key they are
        the same.
        """
        fields, caller, idempotency = self.fields, self.caller, self.idempotency
        sent = [line for line in fields["messages"] if isinstance(line, Mapping)]
        # Refuse the request if a message is of another user or agent than the key's.
        if caller.user_id is not None:
            for user_id in _texts(sent, "user_id"):
                caller.user(user_id)
        if caller.agent_id is not None:
            for name in _texts(sent, "agent"):
                caller.agent(name)
        agent = None
        if "agent" in fields:
            agent = str(caller.agent(fields["agent"]).id)
        elif not all("agent" in line for line in sent):
            only = caller.only_agent()
            agent = None if only is None else str(only.id)
        defaults = {
            "agent": agent,
            "user_id": caller.user_id_in(fields),
            "thread_id": fields.get("thread_id"),
        }
        results: list[lines.LineResult] = []

        def write() -> UUID:
            results[:] = lines.import_history(
                fields["messages"],
                tenant_id=context.required_tenant_id(),
                defaults=defaults,
                ids=DerivedIds(idempotency.key or ""),
            )
            return uuid4()

        idempotency.once(write)
        if not results:  # a repeated request: the external ids identify the messages
            write()
        message_ids = {result.message.pk for result in results if result.message}
        pending = PendingEmbedding.objects.filter(pk__in=message_ids)
        counts = {
            outcome.value: sum(result.status is outcome for result in results)
            for outcome in lines.ImportStatus
        }
        self.log(counts=counts)
        document = serializers.ImportResultSerializer(
            {**counts, "indexed": False, "results": results}
        ).data

        def respond() -> Response:
            return Response({**document, "indexed": not pending.all().exists()})

        wait = float(self.query.get("wait", 0))
        if not (wait and message_ids):
            return respond()
        return responses.respond_when_indexed(self, message_ids, wait, respond)


router = SimpleRouter(use_regex_path=False)
router.register("messages", MessageViewSet, "message")


def _message(message_id: UUID, caller: Caller) -> Message:
    message = caller.rows(replies.sent_messages()).filter(pk=message_id).first()
    if message is None:
        # After a wait too: it may have been erased.
        raise MessageNotFound(f"There is no message '{message_id}' that this caller may see.")
    return message


def _texts(lines: Iterable[Mapping[str, Any]], name: str) -> set[str]:
    return {line[name] for line in lines if isinstance(line.get(name), str)}
