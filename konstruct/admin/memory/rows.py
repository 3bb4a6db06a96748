"""The tables of memory. All rows are shown; append-only rows cannot be changed."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import Case, F, QuerySet, When
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.admin import TabularInline
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin
from konstruct.admin.lists import AgentFilter, UserFilter, link, shortened
from konstruct.admin.operations.queue import JobAdmin
from konstruct.templatetags.texts import speaker as speaker_name
from memory.conversations.transcript import EMBEDDINGS
from memory.indexing.embedding_jobs import retry_now
from memory.models import (
    Conversation,
    ConversationEmbedding,
    ConversationItem,
    Message,
    PendingEmbedding,
    RecallEvent,
    RecallExclusion,
    Scope,
    WindowClear,
)
from tenants.admin.columns import Colours
from tenants.admin.sites import ReadOnly, tenant_site

MAX_QUERY_CHARACTERS: Final = 200


class MemoryAdmin(AgentRowsAdmin):
    """Rows of an agent and a user, in an order that has an index: other orders are too slow."""

    sortable_by: tuple[str, ...] = ()
    list_filter: Any = (AgentFilter, UserFilter, "created_at")


class PieceInline(ReadOnly, TabularInline):
    """The pieces of a message that have vectors."""

    model = ConversationEmbedding
    fields = ("piece", "content", "embedding_model", "created_at")
    ordering = ("embedding_model", "piece")
    extra = 0
    can_delete = False
    show_change_link = True
    verbose_name_plural = _("embedded pieces")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        pieces: QuerySet[Any] = super().get_queryset(request)
        return pieces.defer("embedding", "quantized")


@admin.register(Message, site=tenant_site)
class MessageAdmin(MemoryAdmin):
    """The transcript: every turn, verbatim."""

    sortable_by = ("created_at",)
    list_display = ("created_at", "agent", "user_id", "speaker", "channel", shortened)
    list_filter = (AgentFilter, UserFilter, "role", "created_at")
    ordering = ("-number",)
    inlines = (PieceInline,)
    fields = (
        *("content", "role", "name", "agent", "user_id", "thread_id", "channel", "created_at"),
        *("metadata", "usage", "finish_reason"),
        *("conversation", "in_reply_to", "idempotency_key", "external_id", "id", "number"),
        "agent_id",
    )

    @display(description=_("Speaker"), label=Colours({"user": "info", "assistant": "success"}))
    def speaker(self, message: Message) -> tuple[str, str]:
        """The author, as on the page of the conversation."""
        return message.role, speaker_name(message)

    @display(description=_("Conversation"))
    def conversation(self, message: Message) -> SafeString:
        """A link to the conversation."""
        return link(gettext("Open conversation"), "conversation", message.pk)


@admin.register(ConversationEmbedding, site=tenant_site)
class ConversationEmbeddingAdmin(MemoryAdmin):
    """Embedded texts, with the model of the vectors."""

    sortable_by = ("created_at",)
    list_display = ("created_at", "agent", "user_id", "role", shortened, "embedding_model")
    list_filter = (AgentFilter, UserFilter, "role", "created_at")


@admin.register(PendingEmbedding, site=tenant_site)
class PendingEmbeddingAdmin(JobAdmin):
    """Messages that are not embedded yet, with the reason. Failed ones can be retried."""

    kind = EMBEDDINGS
    list_display = ("message", "state", "attempts", "last_error", "due_at", "created_at")
    ordering = ("created_at", "message_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # An embedding is never given up: it has failed until its next attempt.
        failed_at = Case(When(last_error__gt="", then=F("due_at")))
        return super().get_queryset(request).annotate(failed_at=failed_at)

    def retry_job(self, row: PendingEmbedding) -> bool:
        return retry_now(row.pk)


@admin.register(RecallEvent, site=tenant_site)
class RecallEventAdmin(MemoryAdmin):
    """Recalls: the memories that were found for a reply, and those that were left out."""

    sortable_by = ("created_at",)
    list_display = (
        *("created_at", "agent", "user_id", "query", "hit_count", "abstained", "milliseconds"),
    )
    list_filter = (AgentFilter, UserFilter, "abstained", "created_at")
    fields = (
        *("query", "why", "abstained", "milliseconds", "agent", "user_id", "embedding_model"),
        *("created_at", "id", "agent_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        question = Left("reply__in_reply_to__content", MAX_QUERY_CHARACTERS)
        return super().get_queryset(request).defer("packed").annotate(question=question)

    @display(description=_("Query"))
    def query(self, event: Any) -> str:
        """The beginning of the message that was answered."""
        return event.question or ""

    @display(description=_("Sources of the reply"))
    def why(self, event: RecallEvent) -> SafeString | str:
        """A link to the reply and its sources."""
        if event.reply_id is None:
            return gettext("Recalled for no reply.")
        return link(
            gettext("See the reply and its recalled memories"),
            "conversation",
            event.reply_id,
            query={"why": event.reply_id},
        )


@admin.register(RecallExclusion, site=tenant_site)
class RecallExclusionAdmin(MemoryAdmin):
    """Messages, and words of messages, that recall leaves out."""

    list_display = ("created_at", "agent", "user_id", "reason", "author_name")
    ordering = ("-created_at",)


@admin.register(Scope, site=tenant_site)
class ScopeAdmin(MemoryAdmin):
    """Each user of each agent, with the number that the index of recall uses."""

    list_display = ("id", "agent", "user_id")
    list_filter = (AgentFilter, UserFilter)
    ordering = ("id",)


@admin.register(WindowClear, site=tenant_site)
class WindowClearAdmin(MemoryAdmin):
    """Recent turns that were cleared."""

    list_display = ("created_at", "agent", "user_id", "last_number")
    ordering = ("-id",)


@admin.register(Conversation, site=tenant_site)
class ConversationAdmin(MemoryAdmin):
    """Titles and metadata of conversations."""

    list_display = ("title", "agent", "user_id", "thread_id", "created_at")
    list_filter = (AgentFilter, UserFilter)
    ordering = ("agent_id", "user_id", "thread_id")


@admin.register(ConversationItem, site=tenant_site)
class ConversationItemAdmin(MemoryAdmin):
    """Items that agent frameworks store in conversations."""

    list_display = ("created_at", "agent", "user_id", "thread_id", "__str__")
    list_filter = (AgentFilter, UserFilter)
    ordering = ("-number",)
