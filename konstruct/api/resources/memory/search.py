"""Search in the messages of all people of the tenant, or of those that a key is bound to."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import AwareDateTimeField, StrictCharField, TextField
from konstruct.api.http.lists import AgentUserQuery
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.api.resources.memory.facts import FoundFactSerializer
from konstruct.orchestrator.identities.channel_identities import users_of_accounts
from memory.browse.people import people, with_text
from memory.browse.search import LIMIT_SECONDS, MAX_HITS, MessageFilter, search_messages
from memory.conf import SEARCH_FLOOR
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_QUERY_CHARACTERS = 1_000
# Of facts and people the best.
SHOWN = 10


class SearchQuery(AgentUserQuery):
    """Query parameters of a search."""

    q = TextField(max_length=MAX_QUERY_CHARACTERS, help_text="Words, a description, or a name.")
    channel = StrictCharField(
        required=False, max_length=255, help_text="Only messages of this channel."
    )
    since = AwareDateTimeField(
        required=False, help_text="Only messages from this moment on (with a time zone)."
    )
    until = AwareDateTimeField(
        required=False, help_text="Only messages before this moment (with a time zone)."
    )
    limit = serializers.IntegerField(
        required=False,
        default=25,
        min_value=1,
        max_value=MAX_HITS,
        help_text="At most this many messages.",
    )


class SearchedMessageSerializer(serializers.Serializer):
    """A message that matches."""

    message_id = serializers.UUIDField(source="message.pk")
    agent_id = serializers.UUIDField(source="message.agent_id")
    user_id = serializers.CharField(source="message.user_id")
    thread_id = serializers.CharField(source="message.thread_id")
    channel = serializers.CharField(source="message.channel")
    role = serializers.CharField(source="message.role", help_text="user or assistant.")
    name = serializers.CharField(
        source="message.name", help_text="The speaker's display name, or empty."
    )
    content = serializers.CharField(source="message.content")
    created_at = serializers.DateTimeField(source="message.created_at")
    score = serializers.FloatField(help_text="The similarity, plus half of `words`.")
    similarity = serializers.FloatField(
        source="cosine", allow_null=True, help_text="Cosine; null before it is embedded."
    )
    words = serializers.FloatField(
        help_text="Share of the query's words in the message, weighted by rarity: 0 to 1."
    )


class SearchedPersonSerializer(serializers.Serializer):
    """A person who matches."""

    user_id = serializers.CharField()
    name = serializers.CharField(help_text="The name of their last message, or empty.")


class SearchAnswerSerializer(serializers.Serializer):
    """The results of a search, best first in each kind."""

    messages = SearchedMessageSerializer(many=True)
    facts = FoundFactSerializer(many=True)
    people = SearchedPersonSerializer(many=True)
    is_partial = serializers.BooleanField(
        help_text=f"A part of the search took longer than {LIMIT_SECONDS} s, and was left out."
    )


@route("search/", name="search-everything")
class SearchView(ApiView):
    """One search over messages, facts and people."""

    tag = "memories"
    allows_bound_keys = True

    @operation(
        Action.SEARCH,
        "everything",
        permission=("audit.search_everyone", "memory.view_memoryentry", "memory.view_scope"),
        query=SearchQuery,
        id="search_everything",
        description="Searches messages of all people by words and by meaning, facts by meaning, "
        "and "
        "people by names, ids and linked accounts. Facts, and messages without a word of the query,"
        f" need a cosine of {SEARCH_FLOOR}. A key that is bound to an agent or a user searches only"
        " their data. For an agent's own recall, with the context of each conversation, use"
        " `search_memories`.",
        returns=SearchAnswerSerializer,
        errors=(422,),
    )
    def get(self, request: Request) -> Response:
        """Search messages, facts and people."""
        fields = self.query
        agent_id, user_id = self.caller.agent_id_in(fields), self.caller.user_id_in(fields)
        query = fields["q"]
        vector = embed([query])[0]
        narrowed = MessageFilter(
            agent_id=agent_id,
            user_id=user_id,
            **{name: fields.get(name) for name in ("channel", "since", "until")},
        )
        result = search_messages(
            query, message_filter=narrowed, limit=fields["limit"], query_embedding=vector
        )
        facts = LongTermMemory().search(
            required_tenant_id(),
            query,
            SHOWN,
            agent_id,
            user_id=user_id,
            shared=user_id is None,
            threshold=SEARCH_FLOOR,
            query_embedding=vector,
        )
        is_whole = agent_id is None and user_id is None
        accounts = users_of_accounts(query) if is_whole else ()
        found = people(agent_id=agent_id).filter(
            with_text(query, also_ids=accounts, agent_id=agent_id)
        )
        if user_id is not None:
            found = found.filter(user_id=user_id)
        document: dict[str, Any] = {
            "messages": self.documents(result.hits, SearchedMessageSerializer),
            "facts": self.documents(facts, FoundFactSerializer),
            "people": self.documents(found[:SHOWN], SearchedPersonSerializer),
            "is_partial": result.is_partial,
        }
        return Response(document)
