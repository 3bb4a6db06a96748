"""Tables of the access log, and of requests to erase a person. Append-only for the application."""

import uuid
from typing import Any, Final, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, ngettext

from tenants import fields, jobs, personal_data as personal, transaction
from tenants.audit.people import Person, pseudonyms
from tenants.models import TenantModel

# A tenant's rules are applied together, again and again as long as there is one.
RETENTION: Final = jobs.owner_kind("retention")
TENANT_JOB_KEY: Final = uuid.UUID(int=0)
# Writes the file of a list's export, and deletes it after a day. The key is the id of the export.
EXPORTS: Final = jobs.JobKind(
    name="export",
    # Given by name: the task needs the pages of the admin, which import this module.
    do="tenants.tasks.write_export",
    queue="extractions",
    max_attempts=3,
    includes_suspended=True,
)


class Action(models.TextChoices):
    """An action of a person, program or operator."""

    LIST = "list", "listed"
    VIEW = "view", "viewed"
    SEARCH = "search", "searched"
    EXPORT = "export", "exported"
    IMPORT = "import", "imported"
    SEND = "send", "sent"
    CLEAR = "clear", "cleared"
    CREATE = "create", "created"
    EDIT = "edit", "edited"
    DELETE = "delete", "deleted"
    TRY = "try", "tried"
    RETRY = "retry", "retried"
    ERASE = "erase", "asked to erase"
    ESCALATE = "escalate", "called a person into"
    ANSWER = "answer", "answered in"
    RESOLVE = "resolve", "resolved"
    DECIDE = "decide", "decided"
    LINK = "link", "linked"
    UNLINK = "unlink", "unlinked"
    LOGIN = "login", "logged in"
    LOGOUT = "logout", "logged out"
    LOGIN_FAILED = "login_failed", "failed to log in"
    REFUSE = "refuse", "was refused"


class ActorKind(models.TextChoices):
    """The kind of an actor."""

    PERSON = "person", "person in the admin"
    PROGRAM = "program", "program with an API key"
    OPERATOR = "operator", "operator's command"
    UNKNOWN = "unknown", "unknown"


OF_PEOPLE: Final = """
    pseudonym IN (SELECT pseudonym FROM audit_person WHERE user_id = ANY(%(users)s))
    OR pseudonyms && ARRAY(SELECT pseudonym FROM audit_person WHERE user_id = ANY(%(users)s))
"""


def about_people(*user_ids: str) -> models.Q:
    """Return the condition for entries about these users, also of lists that showed them."""
    named = Person.objects.filter(user_id__in=user_ids).values_list("pseudonym", flat=True)
    return models.Q(pseudonym__in=named) | models.Q(pseudonyms__overlap=named)


class AccessEvent(TenantModel):
    """An event of the access log: actor, action, subject, time and address. Append-only.

    People are named by the pseudonyms of `Person`. Written in the transaction of the action; for a
    refused action, after the rollback.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of the event.")
    actor_kind = models.TextField(choices=ActorKind, help_text="Kind of the actor.")
    actor_id = models.TextField(help_text="Id of the person, or of the API key.")
    actor = models.TextField(help_text="Name of the actor at that time.")
    action = models.TextField(choices=Action, help_text="The action.")
    subject = models.TextField(
        help_text="Type of the object: conversation, memories, fact, API key …"
    )
    subject_id = fields.optional_text(help_text="Id of the object, if the action had a single one.")
    agent_id = fields.optional_id(
        "agent", help_text="The agent, if the action concerned a single one."
    )
    pseudonym = fields.optional_id(
        help_text="Pseudonym of the person, if the action concerned a single one."
    )
    pseudonyms = ArrayField(
        models.UUIDField(),
        null=True,
        blank=True,
        help_text="Pseudonyms of the people that were shown, at most 200.",
    )
    people_count = fields.optional_number(
        "people shown", help_text="The number of people that were shown."
    )
    detail = fields.json_object(
        blank=True,
        help_text="Numbers and words of the action; for a change, the values before and after."
        " Texts are left out.",
    )
    address = models.GenericIPAddressField(
        null=True, blank=True, help_text="IP address of the client."
    )
    request_id = fields.optional_text(
        help_text="Id of the request, as in its log lines, if it is a UUID."
    )

    # Entries stay, and name no person once their row of audit_person is deleted.
    personal_data = personal.PersonalData(where=OF_PEOPLE, on_erasure=personal.OnErasure.KEEP)

    class Meta:
        verbose_name = "access"
        verbose_name_plural = "access log"
        indexes = [
            models.Index(fields=["pseudonym", "-id"], name="access_of_person"),
            # Postgres uses no index of arrays under row-level security: this one leads to the
            # entries with several people.
            models.Index(
                fields=["-id"],
                name="access_of_people",
                condition=models.Q(pseudonyms__isnull=False),
            ),
            models.Index(fields=["actor_kind", "actor_id", "-id"], name="access_by_actor"),
        ]
        permissions = [
            ("recall_memories", "Can search memories as an agent would"),
            ("search_everyone", "Can search the messages of all people"),
            ("export_person", "Can export all data of a person"),
            ("try_agent", "Can try an agent without storing anything"),
            ("clear_session", "Can clear sessions of graphs"),
            ("export_list", "Can export the rows of lists as CSV"),
        ]

    def __str__(self) -> str:
        return gettext("%(actor)s %(action)s %(subject)s") % {
            "actor": self.actor,
            "action": self.get_action_display(),
            "subject": gettext(self.subject),
        }


class ErasureRequestQuerySet(models.QuerySet["ErasureRequest"]):
    """Requests of a tenant."""

    def open(self) -> Self:
        """Those that are not done yet, the oldest first."""
        return self.filter(done_at__isnull=True).order_by("created_at", "pk")

    def about(self, *user_ids: str) -> Self:
        """Those of a person with one of these ids, also when they are done, the newest first."""
        names = [name for user_id in user_ids for name in (user_id, *pseudonyms(user_id))]
        named = models.Q(user_id__in=names) | models.Q(user_ids__overlap=names)
        return self.filter(named).order_by("-created_at", "pk")


class RetentionRule(TenantModel):
    """The retention period of the conversations of one agent, or of all agents without a rule."""

    id = fields.random_id()
    agent_id = fields.optional_id("agent", help_text="The agent. Empty: all agents without a rule.")
    days = models.PositiveIntegerField(help_text="Older messages are removed every hour.")
    next_days = fields.optional_number(
        editable=False,
        help_text="New, shorter period that has not taken effect yet. Empty: no change is pending.",
    )
    effective_at = fields.optional_time(
        editable=False, help_text="When the new period takes effect."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of creation.")

    personal_data = personal.NoPersonalData("numbers of days")

    class Meta:
        verbose_name = "retention rule"
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id"], nulls_distinct=False, name="retention_one_rule"
            ),
            models.CheckConstraint(condition=models.Q(days__gt=0), name="retention_days"),
            models.CheckConstraint(
                condition=models.Q(next_days__isnull=True, effective_at__isnull=True)
                | models.Q(next_days__gt=0, effective_at__isnull=False),
                name="retention_next_days",
            ),
        ]

    def __str__(self) -> str:
        days = self.next_days or self.days  # a new rule, and fewer days, wait for a day
        return ngettext("%(days)s day", "%(days)s days", days) % {"days": days}

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it, and let the owner's worker apply the tenant's rules."""
        with transaction.atomic():
            super().save(*args, **kwargs)
            RETENTION.enqueue(TENANT_JOB_KEY)


class Erasure(TenantModel):
    """A request to erase something. Only the owner's process can do it, and writes the receipt."""

    id = fields.random_id()
    reason = fields.optional_text(help_text="Reason.")
    requested_by = models.TextField(help_text="The person or key that requested it.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was requested.")
    last_error = fields.optional_text(help_text="Error of the last attempt.")
    done_at = fields.optional_time(help_text="When it was done.")

    class Meta:
        abstract = True


class ErasureRequest(Erasure):
    """A request to erase a person. It stays as a receipt.

    It holds no content. Once it is done, it holds a digest instead of the person's id.
    """

    user_id = models.TextField(
        "user", help_text="Id of the person to erase. After the erasure, a keyed digest of the id."
    )
    user_ids = fields.text_list(
        blank=True,
        editable=False,
        help_text="All linked ids of the person when the erasure began. After the erasure,"
        " digests.",
    )
    by_bound_key = fields.flag(
        default=False,
        editable=False,
        help_text="Requested by a key that is bound to an agent or a user.",
    )
    agent_id = fields.optional_id(
        "agent", help_text="The agent to erase the person from. Empty: all agents."
    )
    threads = fields.text_list(
        blank=True, help_text="Graph sessions of the user that the transcript does not name."
    )
    all_replies = fields.flag(
        "erase all replies to others",
        default=False,
        help_text="All replies to others that were written with this person's words are erased.",
    )
    reply_ids = fields.id_list(
        "erased replies to others",
        blank=True,
        help_text="The replies to others that are erased; the others are kept.",
    )
    progress = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="While it runs: the step, and the rows left to remove.",
    )
    receipt = models.JSONField(
        null=True,
        blank=True,
        help_text="Number of removed rows by table, and the rows that were found left.",
    )

    objects = ErasureRequestQuerySet.as_manager()

    personal_data = personal.PersonalData(
        subject="user_id",
        agent="agent_id",
        on_erasure=personal.OnErasure.RECEIPT,
        merge=personal.Merge(unchanged="what was asked for, and its receipt"),
    )

    class Meta:
        verbose_name = "erasure request"
        constraints = [
            models.UniqueConstraint(
                fields=["user_id", "agent_id"],
                condition=models.Q(done_at__isnull=True),
                nulls_distinct=False,
                name="erasure_one_open_request",
            )
        ]

    def __str__(self) -> str:
        return self.user_id


class MessageErasure(Erasure):
    """A request to erase one message, or a conversation.

    It holds no content. It is removed when its user is erased.
    """

    agent_id = models.UUIDField("agent", help_text="The agent of the conversation.")
    user_id = models.TextField("user", help_text="The user of the conversation.")
    thread_id = models.TextField("thread", help_text="The conversation.")
    message_id = fields.optional_id(
        "message", help_text="The message. Empty: the whole conversation."
    )
    reply_ids = fields.id_list(
        "erased quotations", blank=True, help_text="Replies that quote the message, erased with it."
    )
    receipt = models.JSONField(
        null=True, blank=True, help_text="Number of removed rows by table, with digests of the ids."
    )

    # Its arguments are in the access log too.
    personal_data = personal.rows_of_user()

    class Meta:
        verbose_name = "erasure of messages"
        verbose_name_plural = "erasures of messages"
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "user_id", "thread_id", "message_id"],
                condition=models.Q(done_at__isnull=True),
                nulls_distinct=False,
                name="message_erasure_one_open",
            )
        ]

    def __str__(self) -> str:
        return gettext("%(message)s of %(thread)s") % {
            "message": self.message_id or gettext("all"),
            "thread": self.thread_id,
        }


class ListExportQuerySet(models.QuerySet["ListExport"]):
    """Exports of the tenant."""

    def remove(self) -> int:
        """Delete exports with their jobs and files, and return their number.

        The jobs are first: a worker locks its job before it writes a part.
        """
        with transaction.atomic():
            keys = list(self.values_list("pk", flat=True))
            EXPORTS.finish_many(keys)
            ListExportPart.objects.filter(export_id__in=keys).delete()
            ListExport.objects.filter(pk__in=keys).delete()
            return len(keys)


class ListExport(TenantModel):
    """An export of a list's rows: who asked for it, with which filters, and its progress.

    Each erasure removes all exports of the tenant, because a file may hold data of the person.
    """

    id = fields.random_id()
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was requested.")
    member_id = models.BigIntegerField(help_text="Id of the member of the team.")
    member = models.TextField(help_text="Name of the member of the team.")
    list_name = models.TextField(
        "list", help_text="The list: the label of a model, or the name of a page."
    )
    query = fields.optional_text(help_text="The filters, as in the address of the list.")
    time_zone = models.TextField(help_text="Time zone of the times in the file.")
    rows = fields.count(help_text="Rows that are written.")
    size = fields.big_count(help_text="Bytes that are written.")
    user_ids = fields.text_list(
        blank=True, editable=False, help_text="The first people in the file, at most 200."
    )
    people_count = fields.count(editable=False, help_text="The number of people in the file.")
    finished_at = fields.optional_time(help_text="When the file was complete.")
    error = fields.optional_text(help_text="Why there is no file.")
    downloaded_at = fields.optional_time(help_text="When the file was sent, which deletes it.")

    objects = ListExportQuerySet.as_manager()

    # Nothing says of which people the rows of a file are.
    personal_data = personal.PersonalData(where=personal.OF_EVERY_PERSON)

    class Meta:
        verbose_name = "export"

    def __str__(self) -> str:
        return str(self.pk)


class ListExportPart(TenantModel):
    """A part of the file of an export."""

    id = models.BigAutoField(primary_key=True)
    export = models.ForeignKey(
        ListExport, on_delete=models.CASCADE, db_index=False, help_text="The export."
    )
    number = models.PositiveIntegerField(help_text="Its place in the file, from 0.")
    content = models.BinaryField(help_text="Lines of CSV.")

    personal_data = personal.PersonalData(where=personal.OF_EVERY_PERSON)

    class Meta:
        verbose_name = "part of an export"
        verbose_name_plural = "parts of exports"
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="export_parts")]

    def __str__(self) -> str:
        return f"{self.export_id} {self.number}"
