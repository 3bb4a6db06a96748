"""Memory in a tenant's admin: everything can be looked at, nothing that is append-only changed."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.decorators import display

from memory import outbox
from memory.models import (
    ConversationEmbedding,
    MemoryEntry,
    Message,
    PendingEmbedding,
    RecallEvent,
    Scope,
    WindowClear,
)
from memory.short_term import clear_window
from tenants.context import required_tenant_id
from tenants.sites import ReadOnlyModelAdmin, tenant_site


def agent_names() -> QuerySet[Any]:
    """Agents, of whichever application keeps them above memory."""
    agents: QuerySet[Any] = apps.get_model(settings.MEMORY_AGENT_MODEL)._default_manager.all()
    return agents


class AgentFilter(admin.SimpleListFilter):
    """What one agent remembers."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in agent_names().values_list("pk", "name")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = {pk for pk, _ in self.lookup_choices}
        return queryset.filter(agent_id=self.value()) if self.value() in known else queryset


class MemoryAdmin(ReadOnlyModelAdmin):
    """Rows of an agent and a user: the agent by its name, in the same query."""

    show_full_result_count = False
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        name = agent_names().filter(pk=OuterRef("agent_id")).values("name")[:1]
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(agent_name=Subquery(name))

    @display(description="Agent", ordering="agent_name")
    def agent(self, row: Any) -> str:
        """The agent's name, or its id where it is not known (any more)."""
        return row.agent_name or str(row.agent_id or "all agents")


@display(description="Content")
def shortened(row: Any) -> str:
    """The beginning of a text, for lists."""
    return row.content if len(row.content) <= 100 else f"{row.content[:100]}…"


class PieceInline(TabularInline):
    """The pieces of a message that have vectors."""

    model = ConversationEmbedding
    fields = readonly_fields = ("piece", "content", "embedding_model", "created_at")
    ordering = ("embedding_model", "piece")
    extra = 0
    can_delete = False
    show_change_link = True
    verbose_name_plural = "embedded pieces"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        pieces: QuerySet[Any] = super().get_queryset(request)
        return pieces.defer("embedding")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Message, site=tenant_site)
class MessageAdmin(MemoryAdmin):
    """The transcript: every turn, verbatim."""

    list_display = ("created_at", "agent", "user_id", "speaker", "channel", shortened)
    list_filter = (AgentFilter, "role", "channel", "created_at")
    search_fields = ("content", "user_id", "name", "thread_id", "external_id")
    search_help_text = "Words of the message, a user, a thread, or an external id."
    ordering = ("-number",)
    inlines = (PieceInline,)
    fields = (
        *("content", "role", "name", "agent", "user_id", "thread_id", "channel", "created_at"),
        *("in_reply_to", "idempotency_key", "external_id", "id", "number", "agent_id"),
    )
    actions = ("clear_windows",)

    @display(description="Speaker", label={"user": "info", "assistant": "success"})
    def speaker(self, message: Message) -> tuple[str, str]:
        """Who spoke, by name if it is known."""
        return message.role, message.name or message.role

    def has_clear_permission(self, request: HttpRequest) -> bool:
        """Who may write down that a window was cleared."""
        return request.user.has_perm("memory.add_windowclear")

    @admin.action(
        description="Empty the short-term window of these users (long-term memory stays)",
        permissions=["clear"],
    )
    def clear_windows(self, request: HttpRequest, queryset: QuerySet[Message]) -> None:
        """Empty each window that a selected message belongs to, once."""
        windows = set(queryset.values_list("agent_id", "user_id"))
        for agent_id, user_id in windows:
            clear_window(required_tenant_id(), agent_id, user_id)
        self.message_user(request, f"{len(windows)} emptied.", messages.SUCCESS)


@admin.register(ConversationEmbedding, site=tenant_site)
class ConversationEmbeddingAdmin(MemoryAdmin):
    """What was embedded, and by which model."""

    list_display = ("created_at", "agent", "user_id", "role", shortened, "embedding_model")
    list_filter = (AgentFilter, "role", "embedding_model", "created_at")
    search_fields = ("content", "user_id")
    search_help_text = "Words of the piece, or a user."
    ordering = ("-created_at", "id")
    raw_id_fields = ("message",)
    fields = (
        *("content", "role", "agent", "user_id", "message", "piece", "embedding_model"),
        *("created_at", "id", "agent_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("embedding")


class FailedFilter(admin.SimpleListFilter):
    """Waiting for the first time, or failed before."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "waiting"), ("failed", "failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "failed":
            return queryset.exclude(last_error="")
        return queryset.filter(last_error="") if self.value() == "waiting" else queryset


@admin.register(PendingEmbedding, site=tenant_site)
class PendingEmbeddingAdmin(ReadOnlyModelAdmin):
    """Messages that cannot be recalled yet, and why; those that failed can be tried at once."""

    list_display = ("message", "state", "attempts", "last_error", "due_at", "created_at")
    list_filter = (FailedFilter,)
    list_select_related = ("message",)
    search_fields = ("last_error", "message__content", "message__user_id")
    ordering = ("created_at", "message_id")
    show_full_result_count = False
    actions = ("retry",)

    @display(label={"failed": "danger", "waiting": "info"})
    def state(self, pending: PendingEmbedding) -> str:
        """The word for the row's state."""
        return "failed" if pending.last_error else "waiting"

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Who may change the outbox may have it worked on."""
        return request.user.has_perm("memory.change_pendingembedding")

    @admin.action(description="Try again now", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[PendingEmbedding]) -> None:
        """Let the sweeper enqueue the selected messages with its next round."""
        retried = outbox.retry_now(list(queryset.values_list("pk", flat=True)))
        self.message_user(
            request, f"{retried} will be tried within a few seconds.", messages.SUCCESS
        )


@admin.register(RecallEvent, site=tenant_site)
class RecallEventAdmin(MemoryAdmin):
    """Why an agent said what it said: what it remembered for a reply, and what it did not."""

    list_display = ("created_at", "agent", "user_id", "query", "found", "abstained", "took")
    list_filter = (AgentFilter, "abstained", "created_at")
    search_fields = ("query", "user_id")
    search_help_text = "Words of the question, or a user."
    ordering = ("-created_at", "id")
    fields = (
        *("query", "given", "hit_table", "cut_table", "abstained", "took", "reply", "agent"),
        *("user_id", "embedding_model", "created_at", "id", "agent_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        number = Func(F("hits"), function="jsonb_array_length", output_field=IntegerField())
        return super().get_queryset(request).annotate(found=number)

    @display(description="Found", ordering="found")
    def found(self, event: Any) -> int:
        """Number of hits."""
        return event.found

    @display(description="Took", ordering="milliseconds")
    def took(self, event: RecallEvent) -> str:
        """The time of the recall."""
        return f"{event.milliseconds:.1f} ms"

    @display(description="Given to the language model")
    def given(self, event: RecallEvent) -> SafeString:
        """The memories as the model saw them."""
        return format_html_join("", "<p>{}</p>", ((text,) for text in event.injected))

    @display(description="Found")
    def hit_table(self, event: RecallEvent) -> SafeString:
        """Every hit with the score of every channel."""
        return _table(event.hits)

    @display(description="Left out")
    def cut_table(self, event: RecallEvent) -> SafeString:
        """What was found but not given, and why."""
        return _table(event.cut)


def _table(rows: Iterable[dict[str, Any]]) -> SafeString:
    """JSON objects as a table, a column for each key."""
    rows = list(rows)
    if not rows:
        return format_html("<p>{}</p>", "nothing")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = format_html_join("", '<th class="px-2 text-left">{}</th>', ((key,) for key in columns))
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        (
            (
                format_html_join(
                    "",
                    '<td class="px-2 align-top">{}</td>',
                    ((_cell(row.get(key)),) for key in columns),
                ),
            )
            for row in rows
        ),
    )
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(part)}" for key, part in value.items())
    return "" if value is None else str(value)


@admin.register(MemoryEntry, site=tenant_site)
class MemoryEntryAdmin(MemoryAdmin):
    """Facts, with their old versions. They are stored and forgotten through the API."""

    list_display = ("updated_at", shortened, "agent", "user_id", "valid_from", "valid_to")
    list_filter = (AgentFilter, "updated_at", ("version_of", admin.EmptyFieldListFilter))
    search_fields = ("content", "user_id")
    search_help_text = "Words of the fact, or a user."
    ordering = ("-updated_at", "memory_id")
    fields = (
        *("content", "metadata", "agent", "user_id", "valid_from", "valid_to", "expires_at"),
        *("created_at", "updated_at", "version_of", "supersedes", "embedding_model", "memory_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("embedding")


@admin.register(Scope, site=tenant_site)
class ScopeAdmin(MemoryAdmin):
    """Who has memories: every user of every agent, by the number that the index of recall uses."""

    list_display = ("id", "agent", "user_id")
    list_filter = (AgentFilter,)
    search_fields = ("user_id",)
    ordering = ("id",)
    fields = ("id", "agent", "user_id", "agent_id")


@admin.register(WindowClear, site=tenant_site)
class WindowClearAdmin(MemoryAdmin):
    """Short-term windows that were emptied on purpose."""

    list_display = ("created_at", "agent", "user_id", "last_number")
    list_filter = (AgentFilter, "created_at")
    search_fields = ("user_id",)
    ordering = ("-id",)
    fields = ("agent", "user_id", "last_number", "created_at", "agent_id")
