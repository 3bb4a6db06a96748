"""Ask again: the message of a reply, answered by today's memory beside the reply of then."""

import logging
from dataclasses import replace
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from konstruct.admin.access import log_row_access
from konstruct.admin.memory.recall_events import trace_context
from konstruct.admin.memory.sources import sources_of, with_sources
from konstruct.llm.exceptions import LLMError
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.respond import draft_reply
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.exceptions import detail_of
from tenants.limits.quotas import QuotaExceeded

logger = logging.getLogger(__name__)

TRY: Final = "audit.try_agent"


@tenant_site.page("messages/<uuid:reply_id>/ask-again/", name="ask_again", permission=TRY)
@require_POST
def ask_again(request: HttpRequest, reply_id: UUID) -> HttpResponseBase:
    """Answer the message of a reply once more, and store nothing."""
    reply = get_object_or_404(Message.objects.select_related("in_reply_to"), pk=reply_id)
    question = reply.in_reply_to
    agent = Agent.objects.filter(pk=reply.answered_by_id or reply.agent_id).first()
    may_read = request.user.has_perms(("memory.view_message", "memory.view_recallevent"))
    if question is None or agent is None or not may_read:
        messages.warning(request, gettext("This reply answers no message that can be asked again."))
        return redirect("admin:people")
    log_row_access(request, Action.TRY, agent, user_id=reply.user_id, query=question.content)
    return tenant_site.render(
        request,
        "konstruct/ask_again.html",
        title=gettext("Ask again"),
        asked=question,
        reply=reply,
        agent=agent,
        before=sources_of(reply),
        **_answer(question, reply, agent),
        is_fullwidth=1,
    )


def _answer(question: Message, reply: Message, agent: Agent) -> dict[str, Any]:
    """Return today's reply and its sources, or the problem."""
    try:
        message = replace(
            konstruct_message(question), id=uuid4(), thread_id=f"trial-{uuid4()}", channel="trial"
        )
        draft = draft_reply(message, agent, without=(question.pk, reply.pk))
    except (LLMError, QuotaExceeded) as error:
        logger.warning("Asking agent %s again failed: %s", agent.pk, detail_of(error))
        return {"problem": str(error)}
    if draft.prompt is None:
        return {"answer": draft.content}
    why = with_sources(
        trace_context(draft.prompt.trace()),
        agent_id=agent.pk,
        user_id=reply.user_id,
        excluded_ids=(question.pk, reply.pk),
    )
    return {"answer": draft.content, "after": why}
