"""Chat completions, and the agents as models."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import problems, views
from konstruct.channels.rest.responses import DETAILS, event, respond_when_settled, stream_events
from konstruct.channels.rest.serializers import SendSerializer
from konstruct.interfaces import errors
from konstruct.interfaces.openai import completions, requests
from konstruct.orchestrator import exceptions, language_models, replies, tool_calls
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, AnswerOptions, ToolCall
from konstruct.orchestrator.pipeline.accept import Incoming, accept, retry_reply
from memory.models import Message
from tenants import context, transaction
from tenants.audit.models import Action

CompletionOf = Callable[[completions.Answer], completions.Completion]
WAIT_SECONDS: Final = 180.0
NO_RETRY: Final = {"X-Should-Retry": "false"}
REPLY_LATE: Final = problems.Problem(
    504,
    "reply-late",
    f"There is no answer after {WAIT_SECONDS:g} seconds. The message is accepted and will be "
    "answered: a request with the same Idempotency-Key gets the answer.",
)
REPLY_INTERRUPTED: Final = problems.Problem(
    503,
    "reply-interrupted",
    "The answer broke off, and is being given anew: a request with the same Idempotency-Key gets "
    "it.",
)


class IgnoreAccept(DefaultContentNegotiation):
    """Content negotiation that ignores `Accept`: JSON, or events for `stream`."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the only renderer."""
        return renderers[0], renderers[0].media_type


class ChatCompletionViewSet(views.ApiViewSet):
    """Chat completions."""

    allows_bound_keys = True
    schema = None  # docs/openai.yaml describes it
    # The response waits for the reply after the transaction.
    content_negotiation_class = IgnoreAccept

    @views.operation(
        Action.SEND,
        "message",
        permission="memory.add_message",
        query=None,
        own_transaction=True,
    )
    def create(self, request: Request) -> Any:
        """Accept the user's last message, and answer with its reply."""
        chat, key = requests.read_request(request.data), self.idempotency.key
        agent = self.caller.agent(chat.model, active=True)
        parameter = tool_calls.option_needing_model(chat.options)
        if parameter and not language_models.has_language_model(agent):
            detail = (
                "No language model is configured here: answers are text, and no tool is called."
            )
            raise errors.InvalidParameter(parameter, detail, code="unsupported_parameter")
        user_id = requests.user_of(request, chat, self.caller)
        thread_id = requests.thread_of(request, chat)
        thread = Thread(agent.id, user_id, thread_id or user_id)
        instructions = completions.instructions_of(chat, agent, self.caller)
        history = completions.fit_history(chat, agent, instructions)
        answer_options = AnswerOptions(
            options=chat.options,
            instructions=list(instructions),
            # The window is for a thread that the client names without its turns.
            history=None if thread_id and not chat.history else history.turns,
        )
        message, is_new, rounds = self._store(chat, thread, answer_options, key)
        if not is_new and replies.progress_of(message).status is replies.Status.FAILED:
            with suppress(exceptions.NothingToRetry):  # a concurrent request retries it
                retry_reply(message.id, tenant_id=context.required_tenant_id())
        completion = completions.Completion(
            message_id=message.id,
            created_at=message.created_at,
            model=agent.name,
            report=completions.report_of(chat, agent, self.caller, history, is_repeated=not is_new),
            rounds=rounds,
            with_usage=requests.wants_usage(chat.body),
        )

        def completion_of(answer: completions.Answer) -> completions.Completion:
            """Return the completion, with the report of the agent that took over the thread."""
            if answer.answered_by in (None, agent.id):
                return completion
            answering = Agent.objects.filter(pk=answer.answered_by).first()
            if answering is None:
                return completion
            fitting = completions.fit_history(chat, answering, instructions)
            report = completions.report_of(
                chat, answering, self.caller, fitting, is_repeated=not is_new
            )
            return replace(completion, report=report)

        def closing_events(sent: str) -> bytes:
            """Return the last events of a stream that has sent this text so far."""
            answer = self._answer(message.id) or (REPLY_INTERRUPTED if sent else REPLY_LATE)
            if (
                isinstance(answer, completions.Answer)
                and not answer.calls
                and not answer.text.startswith(sent)
            ):
                answer = REPLY_INTERRUPTED
            if isinstance(answer, problems.Problem):
                return _error_events(answer)
            return completion_of(answer).closing_events(answer, sent)

        # Without a key, a retry of the client's library would be another message.
        late = REPLY_LATE if key else replace(REPLY_LATE, headers=NO_RETRY)
        if chat.stream:
            return stream_events(
                self,
                message.id,
                WAIT_SECONDS,
                opening=completion.opening_event(),
                piece=completion.text_event,
                end=closing_events,
                fail=_error_events,
            )
        return respond_when_settled(
            self,
            message.id,
            WAIT_SECONDS,
            lambda: self._respond(message.id, completion_of),
            is_settled=lambda response: response.status_code != 202,
            late=lambda: problems.problem_response(self.request._request, late),
        )

    def _store(
        self, chat: requests.ChatRequest, thread: Thread, options: AnswerOptions, key: str | None
    ) -> tuple[Message, bool, int]:
        """Accept the user's message, or the results of tool calls.

        Returns:
            The message, whether the request is new, and the number of earlier answers with calls of
            the client's tools.
        """
        results, rounds = list(completions.find_results(chat, thread, self.caller)), 0
        tenant_id = context.required_tenant_id()
        with transaction.atomic():
            if chat.stream:  # before the task is enqueued
                transaction.on_commit(lambda: replies.watch(tenant_id, message.id))
            if chat.continues:
                sent = completions.results_to_continue(chat, results)
                message, rounds = sent.message, sent.rounds
                is_new = self._take_results(sent, options)
                self.log(message, action=Action.EDIT if is_new else Action.VIEW)
            else:
                for sent in results:  # without a request for an answer
                    self._take_results(sent, None)
                message, is_new = self._accept(chat, thread, options, key)
                self.log(message, action=None if is_new else Action.VIEW)
            self.write_log_entry()
        return message, is_new, rounds

    def _take_results(self, sent: completions.Results, options: AnswerOptions | None) -> bool:
        by = f"{self.caller.name}, by the API"
        try:
            return tool_calls.record_results(sent.message, sent.texts, by=by, options=options)
        except exceptions.ResultsMissing as error:
            detail = f"The result of the call {completions.shown_id(error.calls[0])} is missing."
            raise errors.InvalidParameter("messages", detail, code=error.openai_code) from error

    def _accept(
        self, chat: requests.ChatRequest, thread: Thread, options: AnswerOptions, key: str | None
    ) -> tuple[Message, bool]:
        """Return the message, and whether it is new."""
        serializer = SendSerializer(
            data={
                "agent": chat.model,
                "user_id": thread.user_id,
                "thread_id": thread.thread_id,
                "content": chat.content,
                **({"name": chat.name} if chat.name else {}),
                **({"metadata": labels} if (labels := requests.labels_of(chat.body)) else {}),
            }
        )
        serializer.is_valid(raise_exception=True)
        incoming = Incoming(
            agent_id=thread.agent_id,
            user_id=thread.user_id,
            thread_id=thread.thread_id,
            channel=replies.COMPLETIONS,
            content=chat.content,
            name=chat.name,
            idempotency_key=key,
            metadata=serializer.validated_data.get("metadata"),
            options=options,
        )
        return accept(incoming, tenant_id=context.required_tenant_id())

    def _respond(self, message_id: UUID, completion_of: CompletionOf) -> Response | HttpResponse:
        """Return the completion or the error; 202 while there is no answer yet."""
        answer = self._answer(message_id)
        if answer is None:
            return HttpResponse(status=202)
        if isinstance(answer, problems.Problem):
            return problems.problem_response(self.request._request, answer)
        return Response(completion_of(answer).document(answer))

    def _answer(self, message_id: UUID) -> completions.Answer | problems.Problem | None:
        """Return the answer to a message, or the error, or None while there is neither."""
        message = self.caller.rows(replies.sent_messages()).filter(pk=message_id).first()
        if message is None:
            raise Http404
        progress = replies.progress_of(message)
        match progress.status:
            case replies.Status.QUEUED:
                return None
            case replies.Status.FAILED | replies.Status.CLOSED:
                return _failure(progress)
            case replies.Status.AWAITING_CONSENT:
                waiting = ToolCall.objects.waiting().filter(message_id=message_id)
                questions = waiting.order_by("round", "position").values_list("question", flat=True)
                return completions.Answer("\n".join(questions) or DETAILS[progress.status])
            case replies.Status.WITH_PROGRAM:
                calls = list(ToolCall.objects.of_message(message_id))
                open_calls = [call for call in calls if tool_calls.awaits_program(call)]
                if not open_calls:
                    return completions.Answer(DETAILS[progress.status])
                text = next(call.content for call in calls if call.round == open_calls[0].round)
                return completions.Answer(
                    text, [completions.call_document(call) for call in open_calls]
                )
            case replies.Status.WITH_PERSON:
                return completions.Answer(DETAILS[progress.status])
        reply = progress.reply
        if reply is None:
            raise Http404
        return completions.Answer(
            reply.content,
            usage=reply.usage,
            finish_reason=reply.finish_reason or "stop",
            answered_by=reply.answered_by_id,
        )


def _error_events(problem: problems.Problem) -> bytes:
    return event(errors.openai_document(problem)) + completions.DONE


def _failure(progress: replies.MessageProgress) -> problems.Problem:
    """Return the error of a failed message. Clients must not retry: it would fail again."""
    status = 504 if progress.error_code == "llm_timeout" else 503
    kind = progress.error_code.replace("_", "-") or "internal-error"
    wait = (progress.due_at - timezone.now()).total_seconds() if progress.due_at else 0.0
    retry_after = {"Retry-After": str(math.ceil(wait))} if wait > 0 else {}
    return problems.Problem(status, kind, progress.last_error, headers={**NO_RETRY, **retry_after})


class ModelViewSet(views.ApiViewSet):
    """The agents as models."""

    queryset = Agent.objects.all()
    subject = "agent"
    allows_bound_keys = True
    schema = None
    content_negotiation_class = IgnoreAccept

    @views.operation(Action.LIST, query=None)
    def list(self, request: Request) -> Response:
        """List the caller's active agents."""
        agents = self.caller.agents().filter(is_active=True).order_by("name")
        return Response({"object": "list", "data": [_model(agent) for agent in agents]})

    @views.operation(Action.VIEW, query=None)
    def retrieve(self, request: Request, model: str) -> Response:
        """Return an active agent."""
        agent = self.caller.agent(model, active=True)
        self.log(agent)
        return Response(_model(agent))


def _model(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "konstruct",
    }


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer 404 to the other paths of OpenAI's API."""
    detail = (
        f"There is nothing at {request.path[:200]}. Of OpenAI's API there are POST "
        "/v1/chat/completions, GET /v1/models and GET /v1/models/{model}: let your client ask for "
        "chat completions."
    )
    return problems.problem_response(request, problems.Problem.of_status(404, detail))
