"""What a program says of facts, and what it is told of them."""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from konstruct.api.http.bodies.fields import (
    NOT_BLANK,
    BoundedListField,
    ChannelIdField,
    MomentField,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from konstruct.api.http.lists.pagination import (
    KeysetPagination,
    PageQuerySerializer,
    ordering_field,
)
from konstruct.strict_json import NotStrictJSON, read_json
from memory.exceptions import InvalidArgument
from memory.models.fact_filters import parse_filters, values_of

LONGEST_QUERY = 8192
MOST_RESULTS = 100
MAX_FACTS_PER_BATCH = 100
FILTERS_HELP = (
    'What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, '
    '{"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold.'
)


class CheckedObjectField(serializers.DictField):
    """A JSON object that memory has looked at: what it refuses is the field's error."""

    def __init__(self, check: Callable[[Mapping[str, Any]], Any], **options: Any) -> None:
        super().__init__(**{"child": serializers.JSONField(allow_null=True), **options})
        self.check = check

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse what is no object, or one that memory could not search by."""
        if not isinstance(data, Mapping):
            self.fail("not_a_dict", input_type=type(data).__name__)
        try:
            self.check(data)
        except InvalidArgument as error:
            raise ValidationError(str(error)) from error
        return dict(data)


@extend_schema_field({"type": "string", "description": "A JSON object as text."})
class FiltersTextField(StrictCharField):
    """Filters in a query parameter: a JSON object as text."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the object."""
        text = super().to_internal_value(data)
        try:
            filters = read_json(text)
            parse_filters(filters)
        except (NotStrictJSON, InvalidArgument) as error:
            raise ValidationError(str(error)) from error
        return filters


class FactFields(StrictSerializer):
    """What of a fact can be said when it is made, and changed afterwards."""

    content = StrictCharField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[NOT_BLANK],
        help_text="The fact, in words: “Maria is allergic to walnuts.”",
    )
    metadata = CheckedObjectField(
        check=values_of, required=False, help_text="A JSON object that searches can filter by."
    )
    valid_from = MomentField(required=False, help_text="Since when it is so. Default: now.")
    valid_to = MomentField(
        required=False, allow_null=True, help_text="Until when it is so; null while it is."
    )
    expires_at = MomentField(
        required=False, allow_null=True, help_text="From then on it is not found any more."
    )


class NewFactSerializer(FactFields):
    """A fact to be kept."""

    agent = ChannelIdField(
        required=False,
        help_text="Name or id of the agent that knows it. Default: all agents do; for a key that "
        "is bound to an agent, that one.",
    )
    user_id = ChannelIdField(
        required=False,
        help_text="The user whom it is about. Default: nobody in particular; for a key that is "
        "bound to a user, that one.",
    )


class NewFactsSerializer(StrictSerializer):
    """Facts to be stored together."""

    facts = BoundedListField(
        child=NewFactSerializer(),
        min_length=1,
        max_length=MAX_FACTS_PER_BATCH,
        help_text="The facts. All of them are stored, or none.",
    )


class FactChangeSerializer(FactFields):
    """What is to be another; the rest stays. What was known before is kept as a version."""

    least_fields = 1
    content = StrictCharField(
        required=False,
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[NOT_BLANK],
        help_text="The fact, in words.",
    )
    valid_from = MomentField(
        required=False,
        help_text="Since when the change is so: after the old version's, not in the future. "
        "Default: now.",
    )


class AtSerializer(StrictSerializer):
    """Query parameters of a read as of a moment."""

    at = MomentField(
        required=False, help_text="As it was at that moment (ISO 8601 with a time zone)."
    )


class FactPages(KeysetPagination):
    """Facts by the time when they were stored first."""

    orderings = {
        "-created_at": ("-created_at", "-memory_id"),
        "created_at": ("created_at", "memory_id"),
    }


class VersionPages(KeysetPagination):
    """Versions of a fact, each written after the other."""

    orderings = {"-updated_at": ("-updated_at", "-memory_id")}


class FactListSerializer(PageQuerySerializer, AtSerializer):
    """Query parameters of the list."""

    ordering = ordering_field(FactPages)

    agent = ChannelIdField(
        required=False, help_text="Only what this agent knows: its own facts, and all agents'."
    )
    user_id = ChannelIdField(
        required=False, help_text="Only what concerns this user: facts about them, and nobody's."
    )
    filters = FiltersTextField(required=False, help_text=f"{FILTERS_HELP} As JSON text.")


class FactSearchSerializer(AtSerializer):
    """A question to the facts."""

    query = StrictCharField(
        max_length=LONGEST_QUERY, validators=[NOT_BLANK], help_text="The question, in any words."
    )
    agent = ChannelIdField(
        required=False, help_text="Only what this agent knows: its own facts, and all agents'."
    )
    user_id = ChannelIdField(
        required=False, help_text="Only what concerns this user: facts about them, and nobody's."
    )
    shared_only = StrictBooleanField(
        required=False, default=False, help_text="Only facts about nobody in particular."
    )
    filters = CheckedObjectField(check=parse_filters, required=False, help_text=FILTERS_HELP)
    limit = StrictIntegerField(
        required=False,
        default=10,
        min_value=1,
        max_value=MOST_RESULTS,
        help_text="At most this many results.",
    )
    threshold = StrictFloatField(
        required=False,
        default=-1.0,
        min_value=-1,
        max_value=1,
        help_text="Least cosine similarity. Default: the nearest, however far.",
    )


class FactSerializer(serializers.Serializer):
    """A fact, or what it was before."""

    memory_id = serializers.UUIDField(help_text="The fact's id, through all changes.")
    url = serializers.URLField(help_text="The fact's address.")
    agent = serializers.CharField(allow_null=True, help_text="Who knows it; null: all agents.")
    agent_id = serializers.UUIDField(allow_null=True)
    user_id = serializers.CharField(allow_null=True, help_text="Whom it is about; null: nobody.")
    content = serializers.CharField()
    metadata = serializers.DictField(child=serializers.JSONField(allow_null=True))
    created_at = serializers.DateTimeField(help_text="When it was stored first.")
    updated_at = serializers.DateTimeField(help_text="When this version was written.")
    valid_from = serializers.DateTimeField(help_text="Since when it is so.")
    valid_to = serializers.DateTimeField(allow_null=True, help_text="Until when it was so.")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="From then on it is not found any more."
    )
    version_id = serializers.UUIDField(help_text="This version's id; the newest has the fact's.")
    supersedes = serializers.UUIDField(
        allow_null=True, help_text="The version that this one replaced."
    )


class NearFactSerializer(serializers.Serializer):
    """A fact that says nearly the same."""

    memory_id = serializers.UUIDField()
    content = serializers.CharField()
    score = serializers.FloatField(help_text="Cosine similarity.")


class StoredFactSerializer(FactSerializer):
    """A fact as it stands, and what was known already."""

    created = serializers.BooleanField(
        help_text="False: the same text stood already, and has taken in what was sent beside it."
    )
    near_duplicates = NearFactSerializer(
        many=True, help_text="Facts that say nearly the same. They are reported, never merged."
    )


class StoredFactsSerializer(serializers.Serializer):
    """The facts of a batch as they are stored, in the order of the request."""

    created = serializers.IntegerField(help_text="The number of facts that are new.")
    results = StoredFactSerializer(many=True)


class FoundFactSerializer(FactSerializer):
    """A fact that a search has found."""

    score = serializers.FloatField(help_text="Cosine similarity to the query, -1 to 1.")


class FactSearchResultSerializer(serializers.Serializer):
    """What was found, best first."""

    results = FoundFactSerializer(many=True)
