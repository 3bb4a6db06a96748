"""Search: in an agent's memory of a user, and in the messages, facts and people of a tenant."""

from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from rest_framework import decorators, exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, views
from konstruct.api.resources.memory.facts import MAX_QUERY_CHARACTERS, FoundFactSerializer
from konstruct.orchestrator.identities.channel_identities import users_of_accounts
from memory.browse.lists import people, with_text
from memory.browse.search import LIMIT_SECONDS, MAX_HITS, MessageFilter, search_messages
from memory.conf import SEARCH_FLOOR
from memory.context.manager import search_memory
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import Message, Scope, attributes
from memory.recall.policy import MAX_TOP_K, MODES, PRESETS
from tenants.audit.models import Action
from tenants.context import required_tenant_id

# Of the search in everything: the length of a query, and the number of facts and of people.
MAX_WORDS_CHARACTERS = 1_000
SHOWN = 10
MESSAGES, FACTS = KINDS = ("messages", "facts")
# Number of facts to find without `top_k`.
DEFAULT_FACTS = 10
# Agents whose memories of a user are searched together.
MAX_AGENTS = 20
VIEW_FACTS = "memory.view_memoryentry"


class SearchSerializer(bodies.StrictSerializer):
    """A question to the memory of one user."""

    agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of an agent of this tenant. Default: that of your key, or the "
        f"agents that know the user, at most {MAX_AGENTS}.",
    )
    user_id = bodies.ChannelIdField(help_text="The user. Memories of others are never searched.")
    query = bodies.TextField(max_length=MAX_QUERY_CHARACTERS, help_text="A question, in any words.")
    top_k = bodies.StrictIntegerField(
        required=False,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="At most this many results. Default: the agent's policy.",
    )
    gate = bodies.StrictBooleanField(
        default=True,
        help_text="Leave out memories that are probably irrelevant, all of them if necessary.",
    )
    mode = serializers.ChoiceField(
        choices=MODES,
        required=False,
        help_text="hybrid uses meaning and words, vector the cosine alone. Default: the agent's "
        "policy.",
    )
    preset = serializers.ChoiceField(
        choices=list(PRESETS),
        required=False,
        help_text="With the gate: how strict recall is. Default: the agent's thresholds.",
    )
    explain = bodies.StrictBooleanField(default=False, help_text="Add the scores of the channels.")
    include = bodies.BoundedListField(
        child=serializers.ChoiceField(choices=KINDS),
        default=["messages"],
        min_length=1,
        max_length=len(KINDS),
        help_text="Kinds to search: messages, facts, or both.",
    )
    shared = bodies.StrictBooleanField(default=True, help_text="false: without facts of no user.")
    filters = bodies.CheckedObjectField(
        check=attributes.parse_filters,
        required=False,
        help_text=f"{bodies.FILTERS_HELP} Other messages are ignored, as if they did not exist.",
    )
    at = bodies.AwareDateTimeField(
        required=False, help_text="Only messages up to this time (ISO 8601 with a time zone)."
    )


class MemorySerializer(serializers.Serializer):
    """A message found by recall."""

    message_id = serializers.UUIDField()
    agent_id = serializers.UUIDField(help_text="The agent that remembers it.")
    external_id = serializers.CharField(allow_null=True, help_text="Its id, if it was imported.")
    thread_id = serializers.CharField()
    role = serializers.CharField(help_text="user or assistant.")
    name = serializers.CharField(help_text="The speaker's display name, or empty.")
    content = serializers.CharField()
    created_at = serializers.DateTimeField(help_text="The time of the message.")
    metadata = bodies.ObjectField(required=False, help_text="As it was sent, or empty.")
    score = serializers.FloatField(help_text="Ranking score, comparable in this response only.")
    probability = serializers.FloatField(help_text="Calibrated probability that it is relevant.")
    gate_value = serializers.FloatField(
        required=False,
        help_text="The gate's value, which is compared with the agent's thresholds; with explain.",
    )
    channels = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="The score of each channel before its weight; with explain.",
    )


class SearchResultSerializer(serializers.Serializer):
    """The results, best first, one per message; and facts, with separate scores."""

    results = MemorySerializer(many=True)
    abstained = serializers.BooleanField(help_text="No message was relevant enough.")
    facts = FoundFactSerializer(
        many=True, required=False, help_text="The facts found, if `include` names facts."
    )


EXPLAINING = ("channels", "gate_value")
_NAMES = [str(name) for name in MemorySerializer().fields]


class MemoryViewSet(views.ApiViewSet):
    """Recall, as the pipeline does it."""

    subject = "memory"
    allows_bound_keys = True

    @decorators.action(detail=False, methods=["post"], url_path="search")
    @views.operation(
        Action.SEARCH,
        "memories",
        permission="audit.recall_memories",
        query=None,
        body=SearchSerializer,
        returns=SearchResultSerializer,
    )
    def search_memories(self, request: Request) -> Response:
        """Search the memories of a user.

        Searches messages with the recall of the pipeline and, if `include` names them, facts by
        their similarity to the query. Each list has its own scores: a message has the `probability`
        that it is relevant, a fact its cosine. With `gate` a fact needs the minimum cosine of a
        prompt. Without an agent, the memories of each agent that knows the user are searched, best
        first.
        """
        fields = self.fields
        caller = self.caller
        include = fields["include"]
        if FACTS in include and not (caller.scopes or request.user.has_perm(VIEW_FACTS)):
            raise exceptions.PermissionDenied(f"You lack the permission {VIEW_FACTS}.")
        user_id = caller.user(fields["user_id"])
        if "agent" in fields:
            agents = [caller.agent(fields["agent"])]
        else:
            knowing = Scope.objects.filter(user_id=user_id).values("agent_id")
            agents = [*caller.agents().filter(pk__in=knowing).order_by("name")[:MAX_AGENTS]]
        search = partial(
            search_memory,
            required_tenant_id(),
            user_id,
            fields["query"],
            query_embedding=embed([fields["query"]], is_query=True)[0],
            gate=fields["gate"],
            shared=fields["shared"] and caller.user_id is None,
            at=fields.get("at"),
            filters=fields.get("filters"),
        )
        given = {name: fields[name] for name in ("top_k", "gate", "mode") if name in fields}
        policies = [replace(agent.recall_policy, neighbours=0, **given) for agent in agents]
        if "preset" in fields:
            policies = [policy.with_preset(fields["preset"]) for policy in policies]
        # The serializer itself would take a sixth of the time of a search.
        left_out = {"agent_id"} if fields["explain"] else {"agent_id", *EXPLAINING}
        names, results = [name for name in _NAMES if name not in left_out], []
        if MESSAGES in include:
            for agent, policy in zip(agents, policies, strict=True):
                found = search(agent_id=agent.id, policy=policy, facts=0).messages
                results += [
                    {name: getattr(hit, name) for name in names} | {"agent_id": agent.id}
                    for hit in (found.hits if found is not None else ())
                ]
        if len(agents) > 1:
            by_text: dict[str, dict[str, Any]] = {}
            for hit in sorted(results, key=itemgetter("probability"), reverse=True):
                by_text.setdefault(hit["content"], hit)  # others are copies for another agent
            results = [*by_text.values()][: max(policy.top_k for policy in policies)]
        # The index does not have the metadata of all messages.
        if incomplete := {hit["message_id"]: hit for hit in results if hit["metadata"] is None}:
            rows = Message.objects.filter(pk__in=list(incomplete)).values_list("pk", "metadata")
            metadata = dict(rows)
            for message_id, hit in incomplete.items():
                hit["metadata"] = metadata.get(message_id) or {}
        document: dict[str, Any] = {
            "results": results,
            "abstained": MESSAGES in include and not results,
        }
        if FACTS in include:
            agent_id = agents[0].id if "agent" in fields else caller.agent_id
            number = fields.get("top_k", DEFAULT_FACTS)
            facts = search(agent_id=agent_id, policy=None, facts=number).facts
            document["facts"] = self.documents(facts or (), FoundFactSerializer)
        return Response(document)


class SearchQuery(bodies.AgentUserQuery):
    """Query parameters of a search."""

    q = bodies.TextField(max_length=MAX_WORDS_CHARACTERS, help_text="Words, a description, a name.")
    channel = bodies.StrictCharField(
        required=False, max_length=255, help_text="Only messages of this channel."
    )
    since = bodies.AwareDateTimeField(required=False, help_text="Only from this moment on.")
    until = bodies.AwareDateTimeField(required=False, help_text="Only before this moment.")
    limit = bodies.LimitField(default=25, max_value=MAX_HITS, help_text="At most so many messages.")


class SearchedMessageSerializer(serializers.Serializer):
    """A message that matches."""

    message_id = serializers.UUIDField(source="message.pk")
    agent_id = serializers.UUIDField(source="message.agent_id")
    user_id = serializers.CharField(source="message.user_id")
    thread_id = serializers.CharField(source="message.thread_id")
    channel = serializers.CharField(source="message.channel")
    role = serializers.CharField(source="message.role", help_text="user or assistant.")
    name = serializers.CharField(source="message.name", help_text="Display name, or empty.")
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


class SearchViewSet(views.ApiViewSet):
    """One search over messages, facts and people."""

    subject = "everything"
    tag = "memories"
    allows_bound_keys = True

    @views.operation(
        Action.SEARCH,
        permission=("audit.search_everyone", "memory.view_memoryentry", "memory.view_scope"),
        query=SearchQuery,
        returns=SearchAnswerSerializer,
        errors=(422,),
    )
    def search_everything(self, request: Request) -> Response:
        """Search messages, facts and people.

        Searches messages of all people by words and by meaning, facts by meaning, and people by
        names, ids and linked accounts. Facts, and messages without a word of the query, need a
        minimum cosine. A key that is bound to an agent or a user searches only their data. For an
        agent's own recall, with the context of each conversation, use `search_memories`.
        """
        fields = self.query
        agent_id, user_id = self.caller.agent_id_in(fields), self.caller.user_id_in(fields)
        query = fields["q"]
        vector = embed([query], is_query=True)[0]
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
