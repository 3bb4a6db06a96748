"""Chat completions, and the agents as models."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.errors.addresses import problem_response
from konstruct.api.http.errors.problems import Problem, Refusal
from konstruct.api.http.idempotency import idempotency_key, key_of_caller
from konstruct.api.http.views import ApiView
from konstruct.audit.models import Action
from konstruct.channels.rest.events import event
from konstruct.channels.rest.held import DETAILS
from konstruct.channels.rest.reply_wait import live, when_settled
from konstruct.channels.rest.serializers import SendSerializer
from konstruct.interfaces.openai.completions import DONE, CompletionOf, Said
from konstruct.interfaces.openai.errors import error_document, refused
from konstruct.interfaces.openai.following import Report, instructions_of, report_of
from konstruct.interfaces.openai.options import bound_to_follow, wants_usage
from konstruct.interfaces.openai.recognition import (
    RETRY_COUNT,
    Recognised,
    is_repetition,
    recognise,
)
from konstruct.interfaces.openai.requests import ChatRequest, read_request
from konstruct.interfaces.openai.results import Results, continued, document, results_in
from konstruct.interfaces.openai.speakers import thread_of, user_of
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.pipeline.accept import Incoming, accept, retry_reply
from konstruct.orchestrator.replies.outbox import CLOSED
from konstruct.orchestrator.replies.partial_reply import watch
from konstruct.orchestrator.replies.status import (
    MessageProgress,
    Status,
    progress_of,
    sent_messages,
)
from konstruct.orchestrator.tools import program_calls
from memory.models import Message
from tenants import transaction
from tenants.context import required_tenant_id

CHANNEL: Final = "openai"
Reported = Callable[[Said], CompletionOf]
# So long a reply is waited for. A client's library then asks again, and is recognised.
WAIT_SECONDS: Final = 180.0
LATE: Final = Problem(
    504,
    "reply-late",
    f"There is no answer after {WAIT_SECONDS:g} seconds. The message is accepted and will be "
    "answered: send the same request again to get the answer.",
)
INTERRUPTED: Final = Problem(
    503,
    "reply-interrupted",
    "The answer broke off, and is being given anew: send the same request again to get it.",
)


class AnyAnswer(DefaultContentNegotiation):
    """JSON, or events where `stream` says so, whatever `Accept` asks for."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the only renderer that there is."""
        return renderers[0], renderers[0].media_type


class ChatCompletionsView(ApiView):
    """Messages of end users to agents, as OpenAI's clients send them."""

    permissions = {"POST": ("memory.add_message",)}
    keeps_to_binding = True
    # It waits for a reply, long after the message is committed.
    own_transactions = ("POST",)
    content_negotiation_class = AnyAnswer

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Any:
        """Accept the last message of the user, and answer with its reply."""
        chat = read_request(request.data)
        if not settings.LLM_POOL_URL and (parameter := bound_to_follow(chat.options)):
            why = "No language model is configured here: answers are text, and no tool is called."
            raise Refusal(refused(parameter, why, code="unsupported_parameter"))
        agent = self.caller.agent(chat.model, active=True)
        user_id = user_of(request, chat, self.caller)
        thread = Thread(agent.id, user_id, thread_of(request, chat, user_id))
        instructions = instructions_of(chat, agent, self.caller)
        results, rounds = list(results_in(chat, thread, self.caller)), 0
        tenant_id = required_tenant_id()
        with transaction.atomic():
            if chat.stream:  # before the worker is told of it
                transaction.on_commit(lambda: watch(tenant_id, message.id))
            if chat.continues:
                sent = continued(chat, results)
                message, rounds = sent.message, sent.rounds
                is_new = self._take(sent, chat.options, instructions)
                self.note(message, action=Action.EDIT if is_new else Action.VIEW)
            else:
                for each in results:  # to which the client wants no answer
                    self._take(each, None, ())
                message, is_new = self._accept(chat, thread, instructions)
                self.note(message, action=None if is_new else Action.VIEW)
            self.record()
        is_repeated = not is_new and not _try_again(message, chat.options, instructions)

        def report(agent: Agent) -> Report:
            return replace(report_of(chat, agent, self.caller), is_repeated=is_repeated)

        completion = CompletionOf(
            message_id=message.id,
            created_at=message.created_at,
            model=agent.name,
            report=report(agent),
            rounds=rounds,
            with_usage=wants_usage(chat.body),
        )

        def reported(said: Said) -> CompletionOf:
            """The completion, with the report of the agent to which the thread was handed."""
            if said.answered_by in (None, agent.id):
                return completion
            answering = Agent.objects.filter(pk=said.answered_by).first()
            return replace(completion, report=report(answering)) if answering else completion

        if chat.stream:
            response = live(
                self,
                message.id,
                WAIT_SECONDS,
                opening=completion.opening(),
                piece=completion.piece,
                end=lambda sent: self._end(message.id, sent, reported),
                fail=_broken,
            )
            for name, value in completion.report.headers().items():
                response.headers[name] = value
            return response
        return when_settled(
            self,
            message.id,
            WAIT_SECONDS,
            lambda: self._whole(message.id, reported),
            is_settled=lambda response: response.status_code != 202,
            late=lambda: problem_response(self.request._request, LATE),
        )

    def _take(
        self, sent: Results, options: Mapping[str, Any] | None, instructions: Sequence[str]
    ) -> bool:
        return program_calls.take_results(
            sent.message,
            sent.texts,
            by=f"{self.caller.name}, by the API",
            options=options,
            instructions=instructions,
        )

    def _accept(
        self, chat: ChatRequest, thread: Thread, instructions: Sequence[str]
    ) -> tuple[Message, bool]:
        """Accept the message; False if it is one that stands."""
        request = self.request
        checked = SendSerializer(
            data={
                "agent": chat.model,
                "user_id": thread.user_id,
                "thread_id": thread.thread_id,
                "content": chat.content,
                **({"name": chat.name} if chat.name else {}),
            }
        )
        checked.is_valid(raise_exception=True)
        if (sent := idempotency_key(request)) is not None:
            found = Recognised(None, key_of_caller(request, sent))
        else:
            repeated = is_repetition(request.headers.get(RETRY_COUNT, ""))
            found = recognise(
                chat, instructions, caller=self.caller.id, thread=thread, is_repetition=repeated
            )
        if found.standing is not None:
            return found.standing, False
        incoming = Incoming(
            agent_id=thread.agent_id,
            user_id=thread.user_id,
            thread_id=thread.thread_id,
            channel=CHANNEL,
            content=chat.content,
            name=chat.name,
            idempotency_key=found.idempotency_key,
            options=chat.options,
            instructions=instructions,
        )
        return accept(incoming, tenant_id=required_tenant_id())

    def _whole(self, message_id: UUID, reported: Reported) -> Response | HttpResponse:
        """Return the completion, or why there is none; 202 while it is to come."""
        said = self._said(message_id)
        if said is None:
            return HttpResponse(status=202)
        if isinstance(said, Problem):
            return problem_response(self.request._request, said)
        completion = reported(said)
        return Response(completion.whole(said), headers=completion.report.headers())

    def _end(self, message_id: UUID, sent: str, reported: Reported) -> bytes:
        """Return the last events of a stream, of whose text so much was sent."""
        said = self._said(message_id) or (INTERRUPTED if sent else LATE)
        if isinstance(said, Said) and not said.calls and not said.text.startswith(sent):
            said = INTERRUPTED
        return _broken(said) if isinstance(said, Problem) else reported(said).rest(said, sent)

    def _said(self, message_id: UUID) -> Said | Problem | None:
        """Return what the user is told, or which of the client's tools are called, or why nothing.

        None while there is an answer to come.
        """
        message = self.caller.rows(sent_messages()).filter(pk=message_id).first()
        if message is None:
            raise Http404
        progress = progress_of(message)
        if progress.status is Status.QUEUED:
            return None
        if progress.status is Status.FAILED:
            return _failure(progress)
        if progress.status is Status.AWAITING_CONSENT:
            waiting = ToolCall.objects.waiting().filter(message_id=message_id)
            asked = waiting.order_by("round", "position").values_list("question", flat=True)
            return Said("\n".join(asked) or DETAILS[Status.AWAITING_CONSENT])
        if progress.status is Status.WITH_PROGRAM:
            calls = list(ToolCall.objects.of_message(message_id))
            out = [call for call in calls if program_calls.is_out(call)]
            if not out:
                return Said(DETAILS[Status.WITH_PROGRAM])
            before = next(call.content for call in calls if call.round == out[0].round)
            return Said(before, [document(call) for call in out])
        if progress.status is Status.WITH_PERSON:
            return Said(DETAILS[Status.WITH_PERSON])
        if progress.reply is None:
            raise Http404
        reply = progress.reply
        return Said(
            reply.content,
            usage=reply.usage,
            finish_reason=reply.finish_reason or "stop",
            answered_by=reply.answered_by_id,
        )


def _broken(problem: Problem) -> bytes:
    return event(error_document(problem)) + DONE


def _try_again(message: Message, options: Mapping[str, Any], instructions: Sequence[str]) -> bool:
    """Retry a message that was given up; return whether it was given up.

    The retry uses the options and instructions of this request: the former ones may be why the
    message was given up.
    """
    progress = progress_of(message)
    if progress.status is Status.FAILED and progress.error_code != CLOSED:
        with suppress(NothingToRetry):  # another request was faster
            retry_reply(
                message.id,
                tenant_id=required_tenant_id(),
                options=options,
                instructions=instructions,
            )
            return True
    return False


def _failure(progress: MessageProgress) -> Problem:
    """Why a message was given up. It would fail again at once, so it is not to be repeated."""
    status = 504 if progress.error_code == "llm_timeout" else 503
    headers = {"X-Should-Retry": "false"}
    kind = progress.error_code.replace("_", "-") or "internal-error"
    return Problem(status, kind, progress.last_error, headers=headers)


class ModelsView(ApiView):
    """The agents, as the models that can be asked."""

    permissions = {"GET": ("orchestrator.view_agent",)}
    keeps_to_binding = True
    content_negotiation_class = AnyAnswer

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        """List the active agents that there are for the caller: their names alone."""
        agents = self.caller.agents().filter(is_active=True).order_by("name")
        return Response({"object": "list", "data": [_model(agent) for agent in agents]})


class ModelView(ApiView):
    """One agent, as a model."""

    permissions = {"GET": ("orchestrator.view_agent",)}
    keeps_to_binding = True
    content_negotiation_class = AnyAnswer

    @extend_schema(exclude=True)
    def get(self, request: Request, model: str) -> Response:
        """Tell that there is such an agent."""
        agent = self.caller.agent(model, active=True)
        self.note(agent)
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
    """Answer a path that OpenAI's API may have, and this does not."""
    detail = (
        f"There is nothing at {request.path[:200]}. Of OpenAI's API there are POST "
        "/v1/chat/completions, GET /v1/models and GET /v1/models/{model}: let your client ask for "
        "chat completions."
    )
    return problem_response(request, Problem.of_status(404, detail))
