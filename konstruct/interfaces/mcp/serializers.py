"""What tools take as arguments, and what they give back."""

from django.conf import settings
from rest_framework import serializers

from konstruct.api.http.bodies.fields import (
    NOT_BLANK,
    ChannelIdField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from konstruct.api.http.lists.pagination import CURSOR_TEXT
from konstruct.api.resources.memory.facts.serializers import LONGEST_QUERY, CheckedObjectField
from memory.models.fact_filters import values_of

MOST_RESULTS = 50
KINDS = ("fact", "message")


class WhoseSerializer(StrictSerializer):
    """Whose memory is meant. A key that is bound to an agent or a user need not name it."""

    user_id = ChannelIdField(
        required=False, help_text="Whom the memory is about: the id of a user."
    )
    agent = ChannelIdField(required=False, help_text="Name or id of the agent whose memory it is.")


class RememberSerializer(WhoseSerializer):
    """A fact to be kept."""

    content = StrictCharField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[NOT_BLANK],
        help_text="One fact as a full sentence that is clear without this conversation: "
        "“Maria is allergic to walnuts.”",
    )
    metadata = CheckedObjectField(
        check=values_of, required=False, help_text="Labels of yours, such as a topic."
    )


class SearchSerializer(WhoseSerializer):
    """A question to the memory."""

    query = StrictCharField(
        max_length=LONGEST_QUERY,
        validators=[NOT_BLANK],
        help_text="The question, in any words: “What must Maria not eat?”",
    )
    limit = StrictIntegerField(
        required=False,
        default=10,
        min_value=1,
        max_value=MOST_RESULTS,
        help_text="At most this many facts, and as many messages.",
    )


class ListSerializer(WhoseSerializer):
    """A page of facts."""

    limit = StrictIntegerField(
        required=False, default=20, min_value=1, max_value=MOST_RESULTS, help_text="Facts a page."
    )
    cursor = StrictCharField(
        required=False, validators=[CURSOR_TEXT], help_text="The next_cursor of the page before."
    )


class IdSerializer(StrictSerializer):
    """One memory."""

    id = serializers.UUIDField(help_text="The id that remember, search or list gave.")


class CorrectSerializer(IdSerializer):
    """What a fact is to say from now on."""

    content = StrictCharField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[NOT_BLANK],
        help_text="The whole fact as it is now, as a full sentence.",
    )


class MemorySerializer(serializers.Serializer):
    """A fact, or a message of a conversation."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=KINDS, help_text="fact: was stored; message: was said.")
    content = serializers.CharField()
    when = serializers.DateTimeField(help_text="Since when the fact is so; when it was said.")
    who = serializers.CharField(
        allow_null=True, help_text="Whom the fact is about; who said the message."
    )


class FoundSerializer(MemorySerializer):
    """A memory that a search has found."""

    score = serializers.FloatField(
        help_text="0 to 1: a fact's cosine similarity, a message's probability of being relevant. "
        "Compare within one kind only."
    )


class ResultsSerializer(serializers.Serializer):
    """What was found."""

    results = FoundSerializer(many=True, help_text="Facts, then messages, the best of each first.")


class PageSerializer(serializers.Serializer):
    """A page of facts."""

    results = MemorySerializer(many=True, help_text="Newest first.")
    next_cursor = serializers.CharField(allow_null=True, help_text="null: this is the last page.")


class SimilarSerializer(serializers.Serializer):
    """A fact that says nearly the same."""

    id = serializers.UUIDField()
    content = serializers.CharField()


class RememberedSerializer(MemorySerializer):
    """A fact that was kept."""

    created = serializers.BooleanField(help_text="false: the same text was remembered already.")
    similar = SimilarSerializer(
        many=True, help_text="Facts that say nearly the same: correct or forget what is outdated."
    )


class VersionSerializer(serializers.Serializer):
    """What a fact said before."""

    content = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class OneSerializer(MemorySerializer):
    """A memory, with what it said before."""

    earlier = VersionSerializer(many=True, help_text="Earlier versions of a fact, newest first.")


class ForgottenSerializer(serializers.Serializer):
    """What was forgotten."""

    id = serializers.UUIDField()
    forgotten = serializers.BooleanField()
