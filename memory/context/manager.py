"""Compiles an agent's context: session, facts and recalled turns within a token budget.

Pages and programs search messages and facts with one vector of the query: see `search_memory`.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import dropwhile
from typing import Any, Final
from uuid import UUID

from memory import arguments, embeddings, recall, short_term
from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
from memory.context import chat, prompt, tokens, working
from memory.embedding.embedder import embed, model_version
from memory.facts import LongTermMemory
from memory.models.facts import MemoryEntry
from memory.recall import AdjacentTurn, FactHit, Hit, RecallResult
from memory.recall.policy import DEFAULT_POLICY, RecallPolicy
from memory.text.changes import Statement, newer_first, replacements
from memory.text.lexical import analyse, language_of_latin_words
from memory.text.sentences import is_question
from tenants.audit.people import NO_LOCALE, Locale, locales_of
from tenants.context import asynchronous, known_tenant, tenant_scope
from tenants.exceptions import UnknownTenant

MAX_WORDS_OF_FRAGMENT: Final = 3
MAX_WORDS_OF_FOLLOW_UP: Final = 10
MAX_TURNS_BEFORE: Final = 3
MAX_CHARACTERS_BEFORE: Final = 300
_WORD: Final = re.compile(r"\w+")
# English, German, French and Spanish.
_PRONOUNS: Final = re.compile(
    r"it|its|that|this|these|those|they|them|their|he|him|his|she|her|there|ones?"
    r"|es|das|dies|diese|davon|dafür|damit|er|ihn|ihm|sie|ihr|ihnen|dort"
    r"|ça|cela|il|elle|ils|elles|lui|leur|eux|en|eso|esto|ello|él|ella|ellos|ellas|allí"
)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results by kind, best first; None for a kind that was not searched.

    Messages are ordered by their probability, facts by their cosine. The two cannot be compared.
    """

    messages: RecallResult | None
    facts: list[MemoryEntry] | None


def is_follow_up(text: str, before: Iterable[str] = ()) -> bool:
    """Return whether a message is short and has a pronoun, or has few words, as in “Why?”.

    A question of few words with two besides stop words is complete: “Как зовут собаку?”

    Args:
        text: the message.
        before: texts of the turns before it, which show the language of a short message.
    """
    spaced = _WORD.findall(text.casefold())
    if len(spaced) <= MAX_WORDS_OF_FOLLOW_UP and any(map(_PRONOUNS.fullmatch, spaced)):
        return True
    text = text[:MAX_CHARACTERS_BEFORE]
    # Scripts without spaces have several words in a run of letters.
    if not 0 < len(analyse(text)) <= MAX_WORDS_OF_FRAGMENT:
        return False
    if not is_question(text):
        return True
    texts = [*(turn[:MAX_CHARACTERS_BEFORE] for turn in before), text]
    language = language_of_latin_words(analyse(" ".join(texts)))
    return sum(bool(word.lexeme) for word in analyse(text, language)) <= 1


def with_turn_before(query: str, turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the text to search for a message: a follow-up after the user's turn before.

    If that is a follow-up too, the turn before it comes first; MAX_TURNS_BEFORE turns at most.
    """
    texts = [query]
    before = [turn["content"] for turn in turns if turn["role"] == "user"]
    before = [content[:MAX_CHARACTERS_BEFORE] for content in before[-MAX_TURNS_BEFORE:]]
    for number in reversed(range(len(before))):
        if is_follow_up(texts[0], before[: number + 1]):
            texts.insert(0, before[number])
    return " ".join(texts)


def relevant_facts(
    facts: Sequence[Any], *, floor: float = FACT_FLOOR, near_floor: float = NEAR_FACT_FLOOR
) -> list[Any]:
    """Return the facts that are similar enough to the query, and those without a score.

    Args:
        facts: the found facts, nearest first, each with a `score` or None.
        floor: least cosine similarity of a fact, from -1 to 1.
        near_floor: the least of the NEAR_FACTS nearest.
    """
    return [
        fact
        for place, fact in enumerate(facts)
        if fact.score is None
        or fact.score >= floor
        or (place < NEAR_FACTS and fact.score >= near_floor)
    ]


def search_memory(
    tenant_id: UUID,
    user_id: str,
    query: str,
    *,
    agent_id: UUID | None,
    policy: RecallPolicy | None,
    facts: int,
    gate: bool,
    shared: bool,
    at: datetime | None = None,
    filters: Mapping[str, Any] | None = None,
    query_embedding: Sequence[float] | None = None,
) -> SearchResult:
    """Search messages and facts with one vector of the query.

    Args:
        agent_id: the agent; None: facts of all agents, and no messages.
        policy: the policy of the recall; None: messages are not searched.
        facts: the maximum number of facts; 0: none are searched.
        gate: leave out facts below the floor, see `relevant_facts`.
        shared: include facts about no user.
        at: the state at this time.
        filters: conditions on the metadata.
        query_embedding: the vector of `query`, if the caller has it.
    """
    vector = query_embedding or embed([query], is_query=True)[0]
    messages = entries = None
    if policy is not None and agent_id is not None:
        messages = recall.recall(
            tenant_id,
            agent_id,
            user_id,
            query,
            policy=policy,
            at=at,
            filters=filters,
            query_embedding=vector,
        )
        # Recall ranks by a score that is not shown; people and programs read the probability.
        shown = sorted(messages.hits, key=lambda hit: hit.probability, reverse=True)
        places = {hit.message_id: place for place, hit in enumerate(shown)}
        replaced = {
            place: places[hit.replaced_by]
            for place, hit in enumerate(shown)
            if hit.replaced_by in places
        }
        in_order = newer_first(range(len(shown)), replaced)
        messages = replace(messages, hits=tuple(shown[place] for place in in_order))
    if facts:
        entries = LongTermMemory().search(
            tenant_id,
            vector,
            facts,
            agent_id,
            user_id=user_id,
            shared=shared,
            filters=filters,
            at=at,
        )
        if gate:
            entries = relevant_facts(entries)
    return SearchResult(messages, entries)


MAX_MEMORIES = 10
_LAST = datetime.max.replace(tzinfo=UTC)
# The positional arguments of `store_memory`, after the tenant.
_STORE_ARGUMENTS = ("agent_id", "content", "metadata")


class ContextManager:
    """Compiles the context of a prompt, and stores and searches facts.

    Args:
        session_store: the sessions of graphs, with `get_session_messages(thread_id)`, which returns
            {"role", "content"} or LangChain messages, oldest first; None without graphs.
        memory: the facts, with `search(tenant_id, query, limit, agent_id)`, most relevant first; by
            default `LongTermMemory`. The tenant is passed as the caller has given it. An entry is
            text, or has a `content`, and may have a `score` and a `memory_id`. Entries that all
            have a score are sorted by it. A method with the parameters `user_id` and `shared_only`
            gets the user that facts may be about; one with `query_embedding` gets the vector of the
            text, if it is known; one with `without_evidence` leaves out facts that recall finds by
            their messages.
        compiler: fits the sections into the budget.
        fact_floor: the least cosine similarity of a fact in a prompt, such as
            `memory.conf.FACT_FLOOR`; by default a prompt has the ten nearest facts.
        near_fact_floor: the least similarity of the three nearest facts, such as
            `memory.conf.NEAR_FACT_FLOOR`; by default `fact_floor`.
    """

    def __init__(
        self,
        session_store: Any = None,
        memory: Any = None,
        compiler: working.WorkingContextCompiler | None = None,
        *,
        fact_floor: float = -1.0,
        near_fact_floor: float | None = None,
    ) -> None:
        self.session = session_store
        self.memory: Any = LongTermMemory() if memory is None else memory
        self.compiler = working.WorkingContextCompiler() if compiler is None else compiler
        self.fact_floor = arguments.similarity_argument("fact_floor", fact_floor)
        near = self.fact_floor if near_fact_floor is None else near_fact_floor
        self.near_fact_floor = arguments.similarity_argument("near_fact_floor", near)

    def compile_working_context(
        self,
        tenant_id: UUID | str,
        thread_id: str,
        task: tokens.TaskArgument,
        system_prompt: str,
        model_tier: str = "reasoning",
        *,
        agent_id: UUID | str | None = None,
        user_id: str | None = None,
        session_messages: Iterable[Any] | None = None,
        policy: RecallPolicy | None = None,
        exclude: Iterable[UUID | str] = (),
    ) -> working.CompiledContext:
        """Compile the session and the memories for a task within the budget of the model's tier.

        The turns are those of the thread's graph. For a thread without a graph they are the
        sliding window of the agent and the user, if both are given; then their past conversations
        are searched too. Without a user the context has no facts about users.

        Args:
            tenant_id: the tenant.
            thread_id: the conversation.
            task: the current question: text, or a mapping with a `description` and any other keys.
                Memory is searched with the text or the description; without one nothing is
                searched. Each other key is a line of the prompt.
            system_prompt: the agent's instructions.
            model_tier: "fast" or "reasoning".
            agent_id: only memories of this agent.
            user_id: only memories of this user, and facts about no user.
            session_messages: the turns before the task, if the caller has them, such as a graph's
                node. The session is not read then.
            policy: how the conversations are searched.
            exclude: ids of messages to leave out of the memories, such as the current one.

        Returns:
            system_prompt, messages, context, task and token_usage.

        Raises:
            InvalidArgument: the task cannot be written as text.
            UnknownModelTier: the tier has no budget.
            TenantPinned: the session store is bound to another tenant.
        """
        gathered = self.gather(
            tenant_id,
            thread_id,
            task,
            model_tier,
            agent_id=agent_id,
            user_id=user_id,
            session_messages=session_messages,
            policy=policy,
            exclude=exclude,
        )
        return self.fit(gathered, system_prompt, model_tier).fitted.without_numbers()

    def gather(
        self,
        tenant_id: UUID | str,
        thread_id: str,
        task: tokens.TaskArgument,
        model_tier: str = "reasoning",
        *,
        agent_id: UUID | str | None = None,
        user_id: str | None = None,
        session_messages: Iterable[Any] | None = None,
        policy: RecallPolicy | None = None,
        exclude: Iterable[UUID | str] = (),
        instructions: str = "",
        pause: timedelta | None = None,
        time_zone: str = "",
        locale: Locale | None = None,
    ) -> prompt.PromptParts:
        """Return the turns and memories that `compile_working_context` fits into the budget.

        Turns of the prompt are not recalled; older ones can be. Times are in the time zone of the
        user, or else in `time_zone`, the agent's, or else in UTC; `locale` is the user's, if the
        caller has read it. `instructions` is a system message that the prompt has in full, besides
        the system prompt: its tokens are taken from the shares of turns and memories.

        With a `pause` the context is that of a chat. Turns before the last pause of this length are
        no turns of the prompt; they are recalled. A follow-up, such as "How much of it?", is
        searched with the turn before; in a prompt without turns, it has the last two before the
        pause. The memories begin with these, and with `LongTermMemory.always_given`.
        """
        compiler, task = self._compiler(model_tier, instructions), tokens.Task.of(task)
        arguments.text_argument("task", task.text)
        query = task.description
        # Pinned, so that a session store of another tenant is refused.
        with tenant_scope(tenant_id) as tenant:
            if session_messages is None:
                # Those of the thread's graph, or else of the window.
                if self.session is not None:
                    session_messages = self.session.get_session_messages(thread_id)
                if not session_messages and agent_id is not None and user_id is not None:
                    session_messages = short_term.get_recent_messages(tenant, agent_id, user_id)
            if user_id is not None and locale is None:
                # A memory of another kind may know the tenant alone.
                with suppress(UnknownTenant), known_tenant(tenant, savepoint=False):
                    locale = locales_of([user_id]).get(user_id, NO_LOCALE)
            zone: tzinfo = UTC if locale is None else locale.zone(time_zone)
            turns = _conversation_turns(session_messages or (), query, zone)
            turns, earlier = _split_at_pause(turns, pause)
            if not is_follow_up(query, [turn["content"] for turn in earlier]):
                earlier = []
            # The prompt omits answers whose questions are not in the window.
            prompt_turns = dropwhile(
                lambda turn: turn["role"] == "assistant", compiler.fitting_turns(turns)
            )
            ids = {turn.get("message_id") for turn in (*prompt_turns, *earlier)}
            excluded = {*map(str, exclude), *filter(None, ids)}
            always: list[prompt.PromptFact] = []
            if pause is not None:
                query = with_turn_before(query, turns)
                if user_id is not None and isinstance(self.memory, LongTermMemory):
                    given = self.memory.always_given(tenant_id, agent_id, user_id)
                    always = [prompt.PromptFact.from_entry(entry) for entry in given]
            recalled = empty_recall(query)
            facts: list[prompt.PromptFact] = []
            if query.strip():
                recalled, facts = self._search(
                    tenant_id, query, agent_id, user_id, policy=policy, excluded=excluded,
                    locale=locale,
                )  # fmt: skip
        recalled_facts = [prompt.PromptFact.from_hit(hit) for hit in recalled.facts]
        contents = {fact.content for fact in recalled_facts}
        facts = [fact for fact in facts if fact.content not in contents]
        relevant = relevant_facts(facts, floor=self.fact_floor, near_floor=self.near_fact_floor)
        statements = [Statement(fact.content, fact.since or _LAST, True) for fact in relevant]
        replaced = replacements(statements, query, mentions_user=True)
        labels = [
            f"{chat.REPLACED}Fact: " if n in replaced else "Fact: " for n in range(len(relevant))
        ]
        in_order = newer_first(range(len(relevant)), replaced)
        contents.update(fact.content for fact in relevant)
        always = [fact for fact in always if fact.content not in contents]
        contents.update(fact.content for fact in always)
        return prompt.PromptParts(
            task=task,
            session_messages=turns,
            memories=[
                *(
                    prompt.PromptItem(
                        chat.list_item(f"{chat.EARLIER}{turn['role']}: {chat.turn_text(turn)}"),
                        message_id=prompt.turn_source(turn),
                    )
                    for turn in earlier
                ),
                *(
                    prompt.PromptItem(chat.list_item(f"{chat.KNOWN}{fact.content}"), fact=fact)
                    for fact in always
                ),
                *chat.interleave(
                    [
                        prompt.PromptItem(
                            chat.list_item(f"{labels[n]}{relevant[n].content}"), fact=relevant[n]
                        )
                        for n in in_order
                    ],
                    _prompt_items(recalled.ranking, excluded, zone),
                ),
            ],
            facts=[*recalled_facts, *always, *relevant],
            below_floor=[fact for fact in facts if fact.content not in contents],
            recalled=recalled,
            instructions=instructions,
            zone=zone,
            always_count=len(earlier) + len(always),
        )

    def fit(
        self, gathered: prompt.PromptParts, system_prompt: str, model_tier: str = "reasoning"
    ) -> prompt.Prompt:
        """Return the prompt of the gathered parts, within the budget of the model's tier."""
        compiler = self._compiler(model_tier, gathered.instructions)
        fitted = compiler.fit(
            system_prompt, gathered.session_messages, gathered.lines, gathered.task
        )
        shares: dict[chat.SectionName, int] = {
            section: compiler.share(share) for section, share in prompt.SHARES.items()
        }
        return prompt.Prompt(gathered, fitted, shares)

    def store_memory(self, tenant_id: UUID | str, *args: Any, **kwargs: Any) -> UUID:
        """Store a fact, see `LongTermMemory.store`, and return its memory_id.

        A single positional argument after the tenant is the content. Several are the agent, the
        content and the metadata, in this order.
        """
        names = ("content",) if len(args) == 1 and "content" not in kwargs else _STORE_ARGUMENTS
        fields = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or len(fields) < len(args) + len(kwargs):
            raise TypeError("store_memory() takes a tenant, an agent, a content and metadata, once")
        fields["metadata"] = dict(fields.get("metadata") or {})
        return self.memory.store(MemoryEntry(tenant_id=tenant_id, **fields))

    def search_memory(
        self,
        tenant_id: UUID | str,
        query: str,
        limit: int = MAX_MEMORIES,
        agent_id: UUID | str | None = None,
        **options: Any,
    ) -> list[MemoryEntry]:
        """Return the facts nearest to a text; further arguments as of `LongTermMemory.search`."""
        return self.memory.search(tenant_id, query, limit, agent_id, **options)

    # The name in other memory libraries.
    get_context = compile_working_context

    acompile_working_context = asynchronous(compile_working_context)
    aget_context = acompile_working_context
    agather = asynchronous(gather)
    astore_memory = asynchronous(store_memory)
    asearch_memory = asynchronous(search_memory)

    def _compiler(self, model_tier: str, instructions: str) -> working.WorkingContextCompiler:
        if instructions:
            return type(self.compiler)(
                model_tier, reserved_tokens=prompt.reserved_tokens(instructions)
            )
        if model_tier == self.compiler.model_tier:
            return self.compiler
        return type(self.compiler)(model_tier)

    def _search(
        self,
        tenant_id: UUID | str,
        query: str,
        agent_id: UUID | str | None,
        user_id: str | None,
        *,
        policy: RecallPolicy | None,
        excluded: Iterable[str],
        locale: Locale | None,
    ) -> tuple[RecallResult, list[prompt.PromptFact]]:
        """Search past conversations, if agent and user are given, and facts."""
        has_conversations = agent_id is not None and user_id is not None
        vector = None
        if has_conversations or _accepts_keyword(self.memory.search, "query_embedding"):
            vector = embeddings.embed([query], is_query=True)[0]
        recalled = empty_recall(query)
        if agent_id is not None and user_id is not None:
            recalled = recall.recall(
                tenant_id,
                agent_id,
                user_id,
                query,
                policy=policy,
                exclude=excluded,
                query_embedding=vector,
                locale=locale,
            )
        search = self.memory.search
        options: dict[str, Any] = {
            **({"shared_only": True} if user_id is None else {"user_id": user_id}),
            **({} if vector is None else {"query_embedding": vector}),
        }
        if has_conversations and (policy or DEFAULT_POLICY).uses_facts:
            # Facts with evidence are recalled with their messages.
            options["without_evidence"] = True
        options = {name: value for name, value in options.items() if _accepts_keyword(search, name)}
        entries = search(tenant_id, query, limit=MAX_MEMORIES, agent_id=agent_id, **options)
        facts = [prompt.PromptFact.from_entry(entry) for entry in entries]
        if all(fact.score is not None for fact in facts):
            # A stable sort keeps the memory's order of entries with equal scores.
            facts.sort(key=lambda fact: -(fact.score or 0.0))
        return recalled, facts


def _accepts_keyword(function: Callable[..., Any], keyword: str) -> bool:
    """Return whether a function takes a keyword argument of this name."""
    parameters = inspect.signature(function).parameters
    return keyword in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def empty_recall(query: str) -> RecallResult:
    """Return an empty recall, for a prompt without an agent, a user or a task's description."""
    return RecallResult(
        query=query,
        hits=(),
        cut=(),
        abstained=True,
        embedding_model=model_version(),
        milliseconds=0.0,
    )


def _conversation_turns(messages: Iterable[Any], task: str, zone: tzinfo) -> list[dict[str, Any]]:
    """Return the messages of users and assistants, oldest first, without calls of tools.

    Their times are in the time zone.

    If the task is the last turn, as in a running graph, it is left out.
    """
    turns = [
        {**turn, "content": chat.storable_text(turn["content"])}
        for turn in map(chat.as_turn, messages)
        if turn["role"] in ("user", "assistant") and turn["content"].strip()
    ]
    if turns and (turns[-1]["role"], turns[-1]["content"]) == ("user", task):
        turns.pop()
    for turn in turns:
        if time := chat.turn_time(turn):
            turn["at"] = time.astimezone(zone).isoformat()
    return turns


def _split_at_pause(
    turns: Sequence[dict[str, Any]], pause: timedelta | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the turns since the last pause, and without any the last exchange before it.

    A turn without a time is at the time of the next one.
    """
    later, first = datetime.now(UTC), len(turns)
    while pause is not None and first:
        at = chat.turn_time(turns[first - 1]) or later
        if later - at > pause:
            return list(turns[first:]), list(turns[-2:] if first == len(turns) else ())
        later, first = min(at, later), first - 1
    return list(turns), []


def _prompt_items(
    ranking: Sequence[Hit | FactHit], excluded: set[str], zone: tzinfo
) -> list[prompt.PromptItem]:
    """Return the recalled facts and turns, best first and each once; neighbours surround their
    hit.
    """
    facts = [hit for hit in ranking if isinstance(hit, FactHit)]
    turns = {hit.message_id for hit in ranking if isinstance(hit, Hit)}
    seen = {*excluded, *(str(message_id) for fact in facts for message_id in fact.message_ids)}
    memories: list[prompt.PromptItem] = []
    for hit in ranking:
        if isinstance(hit, FactHit):
            line = chat.fact_line(hit.content, hit.quote, hit.said_at.astimezone(zone))
            memories.append(prompt.PromptItem(line, fact=prompt.PromptFact.from_hit(hit)))
            continue
        around: list[Hit | AdjacentTurn] = [hit, *hit.neighbours]
        for turn in sorted(around, key=lambda turn: turn.created_at):
            if str(turn.message_id) not in seen:
                seen.add(str(turn.message_id))
                at = turn.created_at.astimezone(zone)
                is_replaced = isinstance(turn, Hit) and turn.replaced_by in turns
                label = chat.REPLACED if is_replaced else ""
                line = chat.turn_line(turn.content, turn.name or turn.role, at, label=label)
                memories.append(prompt.PromptItem(line, message_id=turn.message_id))
    return memories
