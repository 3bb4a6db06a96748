"""Imports of files of other systems: a job previews or imports a file."""

import base64
from uuid import UUID

from django.core.validators import RegexValidator
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, schema, views
from konstruct.api.http.operations import actor_of
from konstruct.orchestrator.history_import.assistants import COLUMNS
from konstruct.orchestrator.history_import.chats import ORDERS
from konstruct.orchestrator.history_import.importing import FORMATS, Options
from konstruct.orchestrator.history_import.uploads import request_import
from konstruct.orchestrator.models import HistoryImport
from tenants.audit.models import Action

MAX_NAMES = 1000
BASE64 = RegexValidator(
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=)|[A-Za-z0-9+/]{4})\Z",
    "This is not base64.",
)


class NewHistoryImportSerializer(bodies.StrictSerializer):
    """A file, how it is read, and who is who in it."""

    file = bodies.StrictCharField(validators=[BASE64], help_text="In base64; a large one as zip.")
    file_name = bodies.TextField(
        max_length=255,
        help_text="Its name, which must stay the same if a longer export is imported.",
    )
    format = serializers.ChoiceField(
        choices=[*FORMATS], required=False, help_text="Default: recognized from the content."
    )
    agent = bodies.ChannelIdField(required=False, help_text="Name or id. Only facts need none.")
    user_id = bodies.ChannelIdField(required=False, help_text="The user of what has no other.")
    thread_id = bodies.ChannelIdField(
        required=False, help_text="The conversation of what has none. Default: the file's name."
    )
    people = serializers.DictField(
        child=bodies.ChannelIdField(),
        required=False,
        help_text="Ids of users by names, or ids, of the file. Others are left out.",
    )
    agent_names = bodies.BoundedListField(
        child=bodies.TextField(),
        max_length=MAX_NAMES,
        required=False,
        help_text="Names, or ids, of the file that are the agent's.",
    )
    time_zone = bodies.TextField(
        required=False, help_text="Zone of times without one, such as Europe/Berlin."
    )
    date_order = serializers.ChoiceField(
        choices=[*ORDERS], required=False, help_text="Order of dates that can be read in two ways."
    )
    columns = serializers.DictField(
        child=bodies.TextField(),
        required=False,
        help_text=f"Names of columns of CSV, for {', '.join(COLUMNS)}.",
    )
    dry_run = bodies.StrictBooleanField(default=False, help_text="Store nothing, as a preview.")

    def validate_people(self, people: dict[str, str]) -> dict[str, str]:
        """Refuse names that no file has."""
        bodies.StrictCharField(allow_blank=True).run_validation("".join(people))
        return people

    def validate_file(self, file: str) -> bytes:
        """Return the bytes."""
        return base64.b64decode(file)


class HistoryImportSerializer(bodies.RowSerializer):
    """The state of an import, and its report."""

    url = views.UrlField("history-import-detail", help_text="Its address.")
    state = serializers.ChoiceField(choices=["waiting", "previewed", "imported", "failed"])
    dry_run = serializers.BooleanField(source="is_dry_run", help_text="Whether nothing is stored.")

    class Meta:
        model = HistoryImport
        fields = [
            *("id", "url", "state", "file_name", "dry_run", "report", "error"),
            *("created_at", "finished_at"),
        ]


class HistoryImportViewSet(mixins.RetrieveModelMixin, views.ApiViewSet):
    """Imports of files. They are deleted after a day. Bound keys have no access."""

    queryset = HistoryImport.objects.defer("content", "options")
    serializer_class = HistoryImportSerializer
    subject = "history import"

    @views.operation(
        Action.CREATE,
        body=NewHistoryImportSerializer,
        returns={202: HistoryImportSerializer},
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Import a file of another system, or preview it.

        A worker reads it: `Location` has the state, and then the report with the conversations, the
        authors, and what is left out, with places and reasons. Sending the file again adds what is
        missing. An event `import.done` has the id of the import.
        """
        fields = dict(self.fields)
        content, file_name = fields.pop("file"), fields.pop("file_name")
        is_dry_run = fields.pop("dry_run")
        if "agent" in fields:
            fields["agent"] = str(self.caller.agent(fields["agent"]).pk)

        def write() -> UUID:
            return request_import(
                content, file_name, Options(**fields), by=actor_of(request), is_dry_run=is_dry_run
            ).pk

        return self.create_once(write, status=202)
