"""What clients of mem0 send."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from konstruct.api.http.bodies.fields import (
    NOT_BLANK,
    BoundedListField,
    ChannelIdField,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from konstruct.api.resources.memory.facts.serializers import LONGEST_QUERY, CheckedObjectField
from konstruct.interfaces.mem0 import filters as language
from konstruct.interfaces.mem0.documents import first_moment_after
from memory.exceptions import InvalidArgument
from memory.models.fact_filters import LONGEST_TEXT, values_of

MOST_MESSAGES: Final = 100
MOST_RESULTS: Final = 1_000
LARGEST_PAGE: Final = 500
LAST_PAGE: Final = 1_000_000
MOST_DELETED: Final = 1_000
# Each text is embedded while the client waits.
MOST_UPDATED: Final = 100
LONGEST_REASON: Final = 2_000
MOST_FIELDS: Final = 32

# What clients send that has no meaning here, and what to say of it; "" is not worth a word.
NOT_EXTRACTED = "nothing is extracted by such instructions; memories are kept as facts"
IGNORED: Final = {
    "version": "",
    "api_version": "",
    "output_format": "",
    "org_id": "",
    "project_id": "",
    "async_mode": "",
    "latest_only": "",
    "source": "",
    "custom_categories": NOT_EXTRACTED,
    "custom_instructions": NOT_EXTRACTED,
    "agent_custom_instructions": NOT_EXTRACTED,
    "structured_data_schema": NOT_EXTRACTED,
    "includes": NOT_EXTRACTED,
    "excludes": NOT_EXTRACTED,
    "enable_graph": "there is no graph",
    "immutable": "every memory can be changed, and its history tells how",
    "rerank": "results are in the order of cosine similarity",
    "keyword_search": "results are in the order of cosine similarity; filter by keywords",
    "filter_memories": "no model picks among the results; narrow them by filters or threshold",
    "reference_date": "words such as yesterday are not resolved",
    "delete_linked": "a memory's older versions are deleted with it anyway",
}


def ignored(sent: Any) -> dict[str, str]:
    """What of a request was not heeded, and why; the request said more than nothing of it."""
    reasons = {name: IGNORED.get(name, "") for name in sent if sent[name]}
    return {name: reason for name, reason in reasons.items() if reason}


class LenientSerializer(StrictSerializer):
    """Takes what `IGNORED` has beside its own fields, and no other name."""

    def to_internal_value(self, data: Any) -> Any:
        """Leave out what has no meaning here."""
        if isinstance(data, Mapping):
            data = {name: data[name] for name in data if name in self.fields or name not in IGNORED}
        return super().to_internal_value(data)


class FiltersField(serializers.Field):
    """Filters in mem0's language."""

    def to_internal_value(self, data: Any) -> language.Filter:
        """Take them apart."""
        try:
            return language.parse(data)
        except InvalidArgument as error:
            raise ValidationError(str(error)) from error

    def to_representation(self, value: Any) -> Any:
        """Never told."""
        return None


class MomentField(serializers.Field):
    """A time: a day, a time in UTC unless it says otherwise, or seconds since 1970."""

    def to_internal_value(self, data: Any) -> datetime:
        """Read it."""
        try:
            return language.moment(self.field_name or "", data)
        except InvalidArgument as error:
            raise ValidationError(str(error)) from error

    def to_representation(self, value: Any) -> Any:
        """Never told."""
        return None


class LastDayField(serializers.DateField):
    """The last day of a memory; read as the moment at which it is over."""

    def to_internal_value(self, data: Any) -> datetime:
        """Read a day."""
        day = super().to_internal_value(data)
        if not isinstance(day, date) or day > date.max - timedelta(days=1):
            self.fail("invalid", format="YYYY-MM-DD")
        return first_moment_after(day)


class InMetadataField(ChannelIdField):
    """An id that stands in the metadata, where a search must find all of it."""

    def to_internal_value(self, data: Any) -> str:
        """Refuse one that would be abridged there."""
        text = super().to_internal_value(data)
        if len(text.encode()) > LONGEST_TEXT:
            raise ValidationError(f"Give at most {LONGEST_TEXT} bytes of UTF-8.")
        return text


class EntitiesSerializer(StrictSerializer):
    """Whose a memory is."""

    user_id = ChannelIdField(required=False, allow_null=True)
    agent_id = ChannelIdField(required=False, allow_null=True)
    app_id = InMetadataField(required=False, allow_null=True)
    run_id = InMetadataField(required=False, allow_null=True)


class MessageSerializer(serializers.Serializer):
    """A message of a conversation; of other names, such as `name`, nothing is kept."""

    role = serializers.ChoiceField(choices=["user", "assistant", "system", "tool"])
    content = serializers.JSONField(allow_null=True)

    def validate_content(self, content: Any) -> str:
        """Return the text; of parts, their texts in lines of their own."""
        if content is None:
            return ""
        if isinstance(content, list):
            content = "\n".join(_text_of_part(part) for part in content)
        elif isinstance(content, dict):
            content = _text_of_part(content)
        text = StrictCharField(
            allow_blank=True, max_length=settings.MAX_MESSAGE_CHARACTERS
        ).run_validation(content)
        return str(text)


def _text_of_part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        raise ValidationError("Only text is remembered here: give parts of the type text.")
    text = part.get("text")
    if not isinstance(text, str):
        raise ValidationError("The text of a part is not text.")
    return text


class AddSerializer(LenientSerializer, EntitiesSerializer):
    """What is to be remembered."""

    messages = serializers.JSONField(required=False)
    text = StrictCharField(
        required=False, max_length=settings.MAX_MESSAGE_CHARACTERS, validators=[NOT_BLANK]
    )
    filters = EntitiesSerializer(required=False)
    metadata = CheckedObjectField(check=values_of, required=False, allow_null=True)
    infer = StrictBooleanField(required=False, default=True)
    timestamp = MomentField(required=False, allow_null=True)
    expiration_date = LastDayField(required=False, allow_null=True)

    def validate_messages(self, messages: Any) -> list[dict[str, str]]:
        """Return messages with role and text; a text alone is a user's."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        elif isinstance(messages, dict):
            messages = [messages]
        field = BoundedListField(
            max_length=MOST_MESSAGES, allow_empty=False, child=MessageSerializer()
        )
        return list(field.run_validation(messages))

    def validate_timestamp(self, timestamp: datetime | None) -> datetime | None:
        """Refuse the future: a memory of then would not be found before."""
        if timestamp is not None and timestamp > timezone.now():
            raise ValidationError("Give a time that is not in the future.")
        return timestamp

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Bring together what may be said in two places."""
        if ("messages" in attrs) == ("text" in attrs):
            raise ValidationError({"messages": "Give messages, or text."})
        if "text" in attrs:
            attrs["messages"] = [{"role": "user", "content": attrs.pop("text")}]
        metadata = dict(attrs.get("metadata") or {})
        inner = attrs.pop("filters", {})
        for name in language.ENTITIES:
            said = [attrs.pop(name, None), inner.get(name)]
            if name in language.IN_METADATA:
                said.append(metadata.get(name))
            different = {each for each in said if each is not None}
            if len(different) > 1:
                raise ValidationError({name: "The request names two of them."})
            attrs[name] = different.pop() if different else None
        attrs["metadata"] = metadata
        return attrs


class ReadSerializer(LenientSerializer):
    """Fields that searches and lists share."""

    filters = FiltersField(required=False, allow_null=True)
    fields_ = serializers.JSONField(required=False)
    categories = BoundedListField(
        max_length=language.MOST_VALUES, child=StrictCharField(), required=False, allow_null=True
    )
    show_expired = StrictBooleanField(required=False, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Call one field as mem0 does: a serializer cannot have an attribute of that name."""
        fields = super().get_fields()
        del fields["fields_"]
        fields["fields"] = BoundedListField(
            max_length=MOST_FIELDS, child=StrictCharField(), required=False, allow_null=True
        )
        return fields

    def more_conditions(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """What is asked for beside the filters, in their language."""
        categories = attrs.get("categories")
        return {"categories": categories} if categories else {}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Bring together all that narrows what is found."""
        parts = [part for part in [attrs.get("filters")] if part is not None]
        if more := self.more_conditions(attrs):
            try:
                parts.append(language.parse(more))
            except InvalidArgument as error:
                raise ValidationError(str(error)) from error
        attrs["filters"] = language.Combination("AND", tuple(parts))
        return attrs


class SearchSerializer(ReadSerializer):
    """A question to the memories."""

    query = StrictCharField(max_length=LONGEST_QUERY, validators=[NOT_BLANK])
    top_k = StrictIntegerField(required=False, allow_null=True, min_value=1, max_value=MOST_RESULTS)
    threshold = StrictFloatField(required=False, allow_null=True, min_value=-1, max_value=1)
    metadata = serializers.JSONField(required=False, allow_null=True)

    def more_conditions(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """As metadata, what it must be."""
        metadata = attrs.get("metadata")
        return super().more_conditions(attrs) | ({"metadata": metadata} if metadata else {})


class ListSerializer(ReadSerializer):
    """Which memories are to be listed."""

    start_date = serializers.JSONField(required=False, allow_null=True)
    end_date = serializers.JSONField(required=False, allow_null=True)

    def more_conditions(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """As dates, when it was stored."""
        bounds = {
            operator: attrs[name]
            for operator, name in (("gte", "start_date"), ("lte", "end_date"))
            if attrs.get(name) is not None
        }
        return super().more_conditions(attrs) | ({"created_at": bounds} if bounds else {})


class PageSerializer(LenientSerializer):
    """Query parameters of a list."""

    page = serializers.IntegerField(required=False, default=1, min_value=1, max_value=LAST_PAGE)
    page_size = serializers.IntegerField(
        required=False, default=100, min_value=1, max_value=LARGEST_PAGE
    )


class ChangeSerializer(LenientSerializer):
    """What is to be another."""

    text = StrictCharField(
        required=False, max_length=settings.MAX_MESSAGE_CHARACTERS, validators=[NOT_BLANK]
    )
    metadata = CheckedObjectField(check=values_of, required=False)
    timestamp = MomentField(required=False)
    expiration_date = LastDayField(required=False, allow_null=True)
    least_fields = 1


class FeedbackSerializer(LenientSerializer):
    """What somebody thinks of a memory; null takes back what was thought before."""

    memory_id = serializers.UUIDField()
    feedback = serializers.ChoiceField(
        choices=("POSITIVE", "NEGATIVE", "VERY_NEGATIVE"), required=False, allow_null=True
    )
    feedback_reason = StrictCharField(
        required=False, allow_null=True, allow_blank=True, max_length=LONGEST_REASON
    )


class NamedMemorySerializer(StrictSerializer):
    """One memory of a batch."""

    memory_id = serializers.UUIDField()


class ChangedMemorySerializer(NamedMemorySerializer, ChangeSerializer):
    """One memory of a batch, and what is to be another."""

    least_fields = 2


class DeleteBatchSerializer(StrictSerializer):
    """Memories to be deleted."""

    memories = BoundedListField(
        max_length=MOST_DELETED, allow_empty=False, child=NamedMemorySerializer()
    )


class UpdateBatchSerializer(StrictSerializer):
    """Memories to be changed."""

    memories = BoundedListField(
        max_length=MOST_UPDATED, allow_empty=False, child=ChangedMemorySerializer()
    )
