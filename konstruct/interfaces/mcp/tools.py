"""The tools: description, arguments, result and required scope of each."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.db.models import Model
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.schemas.openapi import AutoSchema

from konstruct.api.auth.authentication import Caller
from konstruct.api.http import bodies, lists, operations
from konstruct.api.http.lists import CURSOR_TEXT
from konstruct.api.models import KeyScope
from konstruct.api.resources.memory.facts import (
    FACT_ORDER,
    MAX_QUERY_CHARACTERS,
    lock_fact,
    visible_facts,
)
from konstruct.orchestrator import agents, runner, usage
from memory import conf, models, recall
from memory.context.manager import search_memory
from memory.exceptions import FactNotFound
from memory.facts import LongTermMemory, filter_facts
from memory.models.attributes import metadata_values
from memory.recall.policy import PRESETS, RecallPolicy
from tenants import transaction
from tenants.audit import changes, people
from tenants.audit.models import Action
from tenants.context import required_tenant_id

# --- Arguments and results ------------------------------------------------------------------------

MAX_RESULTS = 50
KINDS = ("fact", "message")


class OwnerSerializer(bodies.StrictSerializer):
    """The owner of a memory. A key that is bound to an agent or a user need not name it."""

    user_id = bodies.ChannelIdField(
        required=False, help_text="Id of the user that the memory is about."
    )
    agent = bodies.ChannelIdField(
        required=False, help_text="Name or id of the agent of the memory."
    )


class RememberSerializer(OwnerSerializer):
    """A fact to be stored."""

    content = bodies.TextField(
        help_text="One fact as a full sentence that is clear without this conversation: "
        "“Maria is allergic to walnuts.”"
    )
    metadata = bodies.CheckedObjectField(
        check=metadata_values, required=False, help_text="Your own labels, such as a topic."
    )


class SearchSerializer(OwnerSerializer):
    """A search."""

    query = bodies.TextField(
        max_length=MAX_QUERY_CHARACTERS,
        help_text="The question, in any words: “What must Maria not eat?”",
    )
    limit = bodies.StrictIntegerField(
        default=10,
        min_value=1,
        max_value=MAX_RESULTS,
        help_text="At most this many facts, and as many messages.",
    )
    preset = serializers.ChoiceField(
        choices=list(PRESETS),
        required=False,
        help_text="How strictly messages are selected: precise returns fewer, thorough more. "
        "Default: the agent's setting.",
    )


class ListSerializer(OwnerSerializer):
    """A page of facts."""

    limit = bodies.StrictIntegerField(
        default=20, min_value=1, max_value=MAX_RESULTS, help_text="Facts a page."
    )
    cursor = bodies.StrictCharField(
        required=False, validators=[CURSOR_TEXT], help_text="The next_cursor of the previous page."
    )


class IdSerializer(bodies.StrictSerializer):
    """One memory."""

    id = serializers.UUIDField(help_text="An id from remember, search or list.")


class CorrectSerializer(IdSerializer):
    """The new text of a fact."""

    content = bodies.TextField(help_text="The whole fact as it is now, as a full sentence.")


class MemorySerializer(serializers.Serializer):
    """A fact, or a message of a conversation."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(
        choices=KINDS, help_text="A stored fact, or a message of a conversation."
    )
    content = serializers.CharField()
    when = serializers.DateTimeField(help_text="Start of the fact's validity; time of the message.")
    who = serializers.CharField(
        allow_null=True, help_text="User of the fact; author of the message."
    )


class FoundSerializer(MemorySerializer):
    """A search result."""

    score = serializers.FloatField(
        help_text="0 to 1: a fact's cosine similarity, a message's probability of being relevant. "
        "Compare within one kind only."
    )


class ResultsSerializer(serializers.Serializer):
    """Search results."""

    results = FoundSerializer(
        many=True,
        help_text="Facts, then messages, the best of each first; or by the agent's reranker, if it "
        "has one.",
    )
    reranker_problem = serializers.CharField(help_text="Why the reranker gave no order, or empty.")


class PageSerializer(serializers.Serializer):
    """A page of facts."""

    results = MemorySerializer(many=True, help_text="Newest first.")
    next_cursor = serializers.CharField(allow_null=True, help_text="null: this is the last page.")


class SimilarSerializer(serializers.Serializer):
    """A near-duplicate of a fact."""

    id = serializers.UUIDField()
    content = serializers.CharField()


class RememberedSerializer(MemorySerializer):
    """A stored fact."""

    created = serializers.BooleanField(help_text="false: the same text was already stored.")
    similar = SimilarSerializer(
        many=True, help_text="Similar facts: correct or forget outdated ones."
    )


class VersionSerializer(serializers.Serializer):
    """An earlier version of a fact."""

    content = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class OneSerializer(MemorySerializer):
    """A memory with its earlier versions."""

    earlier = VersionSerializer(many=True, help_text="Earlier versions of a fact, newest first.")


class ForgottenSerializer(serializers.Serializer):
    """A deleted fact."""

    id = serializers.UUIDField()
    forgotten = serializers.BooleanField()


class ToolSchema(AutoSchema):
    """REST framework's schemas of serializers, as JSON Schemas."""

    def map_serializer(self, serializer: Any) -> dict[str, Any]:
        """Return the schema of an object."""
        schema: dict[str, Any] = super().map_serializer(serializer)
        for described in schema["properties"].values():
            described.pop("pattern", None)  # of Python, which JavaScript cannot read
            if described.pop("nullable", False):
                described["type"] = [described["type"], "null"]
        if isinstance(serializer, bodies.StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def map_field(self, field: Any) -> dict[str, Any]:
        """Return the schema of a field."""
        if isinstance(field, serializers.DictField):  # a class of its own
            return {"type": "object"}
        schema: dict[str, Any] = super().map_field(field)
        return schema


def object_schema(
    serializer: Any, *, without: Collection[str] = (), required: Collection[str] = ()
) -> dict[str, Any]:
    """Return the schema of a tool's arguments, or of its result.

    Args:
        serializer: the arguments or the result.
        without: fields to leave out.
        required: fields that are required in addition to the serializer's.
    """
    schema = ToolSchema().map_serializer(serializer)
    properties = {n: one for n, one in schema["properties"].items() if n not in without}
    needed = {*schema.get("required", ()), *required}
    return schema | {"properties": properties, "required": [n for n in properties if n in needed]}


# --- Tools ----------------------------------------------------------------------------------------

FACTS = LongTermMemory()
_DIGITS: Final = re.compile(r"\s*[0-9]{1,9}\s*", re.ASCII)


@dataclass(frozen=True)
class Outcome:
    """The result of a tool as an object and as text, and the entry of the access log."""

    document: dict[str, Any]
    text: str
    row: Model | None = None
    action: Action | None = None
    subject: str = ""
    before: changes.RowState | None = None
    after: changes.RowState | None = None
    detail: dict[str, Any] = field(default_factory=dict)


# The text and the object of a tool call's result; without an object, the text of its error.
ToolResult = tuple[str, dict[str, Any] | None]


Function = Callable[[Caller, dict[str, Any]], Outcome]


@dataclass(frozen=True)
class Tool:
    """A tool, with the action and the subject of its entries in the access log."""

    name: str
    title: str
    description: str
    arguments_serializer: type[bodies.StrictSerializer]
    result_serializer: type[serializers.Serializer]
    action: Action
    function: Function
    subject: str = "fact"
    own_transaction: bool = False
    """Whether the function opens its own transactions, because it waits for a reranker."""

    @property
    def scope(self) -> KeyScope:
        """The scope that a key needs."""
        return KeyScope.READ if self.action in operations.READ_ACTIONS else KeyScope.WRITE

    def run(self, caller: Caller, arguments: dict[str, Any]) -> Outcome:
        """Validate the arguments and run the tool.

        Language models send null or "" for arguments that they leave out, and numbers as text: both
        are taken as what they mean.

        Raises ValidationError for invalid arguments, and the errors of the tool's function.
        """
        fields = self.arguments_serializer().fields
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            known = fields.get(name)
            if known is not None and not known.required and value in (None, ""):
                continue
            is_number = isinstance(known, serializers.IntegerField) and isinstance(value, str)
            given[name] = int(value) if is_number and _DIGITS.fullmatch(value) else value
        body = self.arguments_serializer(data=given)
        body.is_valid(raise_exception=True)
        return self.function(caller, body.validated_data)

    def list_document(self, caller: Caller) -> dict[str, Any]:
        """Return the tool for `tools/list`, without arguments that the key is bound to."""
        bound = {"agent": caller.agent_id, "user_id": caller.user_id}
        without = [name for name, value in bound.items() if value is not None]
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": object_schema(
                self.arguments_serializer(), without=without, required=["user_id"]
            ),
            "outputSchema": object_schema(self.result_serializer()),
            "annotations": {
                "readOnlyHint": self.action in operations.READ_ACTIONS,
                "destructiveHint": self.action is Action.DELETE,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


TOOLS: Final[dict[str, Tool]] = {}


def tool(**described: Any) -> Callable[[Function], Function]:
    """Register a function as the tool of its name. Its docstring is the tool's description."""

    def register(function: Function) -> Function:
        name = function.__name__.removeprefix("_")
        description = " ".join(str(function.__doc__).split())
        TOOLS[name] = Tool(name=name, description=description, function=function, **described)
        return function

    return register


@tool(
    title="Remember",
    arguments_serializer=RememberSerializer,
    result_serializer=RememberedSerializer,
    action=Action.CREATE,
)
def _remember(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """Store a fact about a user for later conversations: a preference, a decision, a person, a
    project. One fact per call, as a sentence that is clear by itself. The same text twice is
    one fact. The result lists similar facts: correct or forget an outdated one instead of
    keeping both.
    """
    entry = models.MemoryEntry(
        tenant_id=required_tenant_id(),
        agent_id=caller.agent_id_in(fields),
        user_id=_user_id(caller, fields),
        content=fields["content"],
        metadata=fields.get("metadata", {}),
    )
    with usage.admit_memories(1):
        stored = FACTS.remember(entry, author=caller.author)
    fact = visible_facts(caller).entries().defer("embedding").get(memory_id=stored.memory_id)
    similar = [{"id": near.memory_id, "content": near.content} for near in stored.near_duplicates]
    document = _fact(fact) | {"created": stored.created, "similar": similar}
    verb = "Remembered" if stored.created else "This was already remembered"
    text = f"{verb}, as the fact {stored.memory_id}."
    if stored.near_duplicates:
        text += "\nSimilar facts exist; correct or forget outdated ones:"
        text += "".join(f"\n- fact {near['id']}: {near['content']}" for near in similar)
    if stored.created:
        return Outcome(document, text, fact, after=changes.row_state(fact))
    return Outcome(document, text, fact, action=Action.VIEW)


@tool(
    title="Search",
    arguments_serializer=SearchSerializer,
    result_serializer=ResultsSerializer,
    action=Action.SEARCH,
    subject="facts and memories",
    own_transaction=True,
)
def _search(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """Search the memory of a user: stored facts, and messages of earlier conversations, with
    time and person. Irrelevant results are left out. Search before you answer what may depend
    on earlier conversations. If two results contradict each other, the later one is valid.
    """
    user_id = _user_id(caller, fields)
    # The agent of the messages to search; None if the call names none of several.
    agent = caller.agent(fields["agent"]) if "agent" in fields else caller.only_agent()
    policy = None
    if agent is not None:
        policy = replace(agent.recall_policy, neighbours=0, gate=True, top_k=fields["limit"])
        if "preset" in fields:
            policy = policy.with_preset(fields["preset"])
    with transaction.atomic():
        memory = search_memory(
            required_tenant_id(),
            user_id,
            fields["query"],
            agent_id=None if agent is None else agent.id,
            policy=policy,
            facts=fields["limit"],
            gate=True,
            shared=caller.user_id is None,
        )
    found = [*(memory.facts or ()), *(memory.messages.hits if memory.messages else ())]
    texts = [result.content for result in found]
    reranking = agent and runner.rank(agent, fields["query"], texts, {"agent_id": agent.id})
    results = [
        _fact(result) | {"score": result.score}
        if isinstance(result, models.MemoryEntry)
        else _message(result, user_id) | {"score": result.probability}
        for result in (reranking.kept(found) if reranking else found)
    ]
    zone = people.time_zone_of(user_id, agent.time_zone if agent is not None else "")
    text = _result_lines(results, zone) or _empty_result_text(policy)
    if agent is None and (names := agents.agent_names(caller.agents())):
        text += f"\nOnly facts were searched. To search messages too, name the agent: {names}."
    problem = reranking.problem if reranking else ""
    if problem:
        text += f"\nThe results are in the order of recall. {problem}"
    document = {"results": results, "reranker_problem": problem}
    return Outcome(document, text, detail={"found": len(results)})


def _empty_result_text(policy: RecallPolicy | None) -> str:
    """Return the answer of a search without results, with the floors that results need."""
    floors = [
        f"a fact needs a similarity of {conf.FACT_FLOOR}, one of the {conf.NEAR_FACTS} nearest"
        f" {conf.NEAR_FACT_FLOOR}"
    ]
    if policy is not None:
        minimum = policy.probability(policy.open_at)
        floors.append(f"the best message a probability of {minimum:.2f}")
    return f"No memory answers this: {', '.join(floors)}. Ask in other words."


@tool(
    title="Fetch",
    arguments_serializer=IdSerializer,
    result_serializer=OneSerializer,
    action=Action.VIEW,
    subject="memory",
)
def _get(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """Get a memory by its id: a full message, or a fact with its earlier versions."""
    memory_id = fields["id"]
    versions = [*visible_facts(caller).versions_of(memory_id).defer("embedding")]
    if versions and versions[0].memory_id == memory_id:
        fact, *before = versions
        earlier = [
            {"content": version.content, "since": version.valid_from, "until": version.valid_to}
            for version in before
        ]
        zone = people.time_zone_of(fact.user_id)
        text = _result_lines([_fact(fact)], zone)
        if earlier:
            text += "\nBefore:\n" + "\n".join(
                f"- until {_day(version['until'], zone)}: {version['content']}"
                for version in earlier
            )
        return Outcome(_fact(fact) | {"earlier": earlier}, text, fact, subject="fact")
    message = caller.rows(models.Message.objects.filter(pk=memory_id)).first()
    if message is None:
        raise FactNotFound(f"There is no memory {memory_id}. Search or list to find ids.")
    document = _message(message, message.user_id)
    text = _result_lines([document], people.time_zone_of(message.user_id))
    return Outcome(document | {"earlier": []}, text, message, subject="message")


@tool(
    title="List facts",
    arguments_serializer=ListSerializer,
    result_serializer=PageSerializer,
    action=Action.LIST,
    subject="facts",
)
def _list(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """List all facts about a user, newest first, in pages. To answer a question, use search
    instead.
    """
    user_id = _user_id(caller, fields)
    agent_id = caller.agent_id_in(fields)
    facts = filter_facts(
        required_tenant_id(), agent_id=agent_id, user_id=user_id, shared=caller.user_id is None
    )
    pages = lists.CursorPagination()
    page = pages.rows(
        facts.defer("embedding"),
        ordering=FACT_ORDER,
        list_name=f"mcp {agent_id or ''} {user_id}",
        limit=fields["limit"],
        cursor=fields.get("cursor"),
    )
    results = [_fact(fact) for fact in page]
    text = _result_lines(results, people.time_zone_of(user_id)) or "No facts are remembered."
    next_cursor = pages.next_cursor()
    if next_cursor is not None:
        text += f"\nThere are more facts: list again with cursor {next_cursor}"
    return Outcome({"results": results, "next_cursor": next_cursor}, text)


@tool(
    title="Correct a fact",
    arguments_serializer=CorrectSerializer,
    result_serializer=MemorySerializer,
    action=Action.EDIT,
)
def _correct(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """Replace the text of a fact that changed or was wrong. The old text is kept as an earlier
    version.
    """
    before = changes.row_state(lock_fact(caller, fields["id"]))
    with usage.admit_memories(1):
        fact = FACTS.update(
            fields["id"], required_tenant_id(), content=fields["content"], author=caller.author
        )
    text = f"Corrected. The fact {fact.memory_id} is now: {fact.content}"
    return Outcome(_fact(fact), text, fact, before=before, after=changes.row_state(fact))


@tool(
    title="Forget a fact",
    arguments_serializer=IdSerializer,
    result_serializer=ForgottenSerializer,
    action=Action.DELETE,
)
def _forget(caller: Caller, fields: dict[str, Any]) -> Outcome:
    """Permanently delete a fact with all its versions, because the user asks for it. Messages
    of earlier conversations stay.
    """
    fact = lock_fact(caller, fields["id"])
    FACTS.delete(fields["id"], required_tenant_id())
    text = f"Forgotten, with all its versions: {fact.content}"
    document = {"id": fields["id"], "forgotten": True}
    return Outcome(document, text, fact, before=changes.row_state(fact))


def _user_id(caller: Caller, fields: dict[str, Any]) -> str:
    """Return the user that the call names, or that the key is bound to."""
    if "user_id" in fields:
        return caller.user(fields["user_id"])
    if caller.user_id is None:
        raise ValidationError({"user_id": "Name the user, or use a key that is bound to a user."})
    return caller.user_id


def _fact(fact: models.MemoryEntry) -> dict[str, Any]:
    return {
        "id": fact.memory_id,
        "kind": "fact",
        "content": fact.content,
        "when": fact.valid_from,
        "who": fact.user_id,
    }


def _message(message: recall.Hit | models.Message, user_id: str) -> dict[str, Any]:
    return {
        "id": message.message_id if isinstance(message, recall.Hit) else message.id,
        "kind": "message",
        "content": message.content,
        "when": message.created_at,
        "who": message.name or (user_id if message.role == "user" else message.role),
    }


def _result_lines(memories: Iterable[dict[str, Any]], zone: ZoneInfo) -> str:
    """Return a line for each memory, with its time in the time zone of the user."""
    return "\n".join(
        f"- {row['kind']} {row['id']} ({_day(row['when'], zone)}, {row['who'] or 'no user'}): "
        f"{row['content']}"
        for row in memories
    )


def _day(moment: datetime | None, zone: ZoneInfo) -> str:
    return "now" if moment is None else f"{moment.astimezone(zone):%Y-%m-%d %H:%M} {zone}"


def tools_for(caller: Caller) -> list[dict[str, Any]]:
    """Return the tools that the caller's scopes allow, for `tools/list`."""
    return [tool.list_document(caller) for tool in TOOLS.values() if tool.scope in caller.scopes]
