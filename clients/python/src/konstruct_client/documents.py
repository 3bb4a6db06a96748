"""Documents of the API, as they come and go in JSON. Moments are texts in ISO 8601.

Written by `python -m tests.clients.python.documents` from the API's description.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired


class AffectedReply(TypedDict):
    """A reply to another user that was written with words of the user."""

    id: str
    agent_id: str
    user_id: str
    """The user of the reply."""
    thread_id: str
    content: str
    created_at: str


class Agent(TypedDict):
    """An agent."""

    id: str
    url: str
    """Where it is."""
    name: str
    """The name for programs and people. Unique in the tenant, and not a UUID."""
    system_prompt: NotRequired[str]
    """The agent's purpose and instructions. Every prompt begins with them."""
    identity: NotRequired[str]
    """The agent's identity: “You are Ada, the librarian …”"""
    persona: NotRequired[str]
    """The agent's style: tone, language, manners."""
    model: NotRequired[str]
    """Name of the language model for the deployment's server, and for language models of the
    tenant without a name of a model. Blank: the deployment's model of the tier."""
    model_tier: NotRequired[Literal["fast", "reasoning"]]
    """fast: short contexts and low cost. reasoning: long contexts."""
    language_models: NotRequired[list[str]]
    """Names of the tenant's language models that answer, in this order: the next one is called
    if one fails. None: the tenant's default models."""
    reranker: NotRequired[str]
    """Name of the tenant's reranker, which sorts recalled memories. Blank: none."""
    accepts_client_instructions: NotRequired[bool]
    """Follow the system and developer messages that an application sends through OpenAI's
    interface, after the agent's own instructions. Those of a bound key are never followed."""
    max_completion_tokens: NotRequired[int | None]
    """Maximum number of tokens in one answer of the language model. An application may ask for
    fewer. Blank: only the model's own limit."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no
    limit."""
    is_active: NotRequired[bool]
    """An inactive agent accepts no messages; its memory stays."""
    conversation_pause_hours: NotRequired[int]
    """After this many hours without a message, a new conversation begins: earlier turns are
    recalled, instead of being turns of the prompt."""
    language: NotRequired[
        Literal["en", "de", "es", "fr", "pt", "pl", "tr", "nl", "it", "sv", "da", "nb", "fi", "id"]
        | Literal[""]
    ]
    """Language in which all Latin words of messages and questions are searched. Blank: that of
    the user, or else of each text, by its frequent words."""
    time_zone: NotRequired[str]
    """Time zone of users without one of their own, such as Europe/Berlin, for times in prompts
    and the days of messages. Blank: UTC."""
    recall_mode: NotRequired[Literal["hybrid", "vector"]]
    """How the agent searches memories."""
    recall_top_k: NotRequired[int | None]
    """Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10)."""
    recall_gate: NotRequired[bool]
    """Leave out memories that are probably irrelevant, all of them if necessary."""
    recall_preset: NotRequired[Literal["precise", "balanced", "thorough"]]
    """With the gate: how strict recall is. Choosing a preset clears the agent's own
    thresholds."""
    recall_open_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has
    at least this gate value. Blank: the preset's."""
    recall_keep_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate
    value. Blank: the preset's."""
    recall_neighbours: NotRequired[int | None]
    """Number of turns before and after a memory that are included with it, 0 to 10. Blank: as
    measured (0)."""
    recall_weights: dict[str, float]
    """Weights of the ranking that differ from the measured ones, such as {'time': 1}."""
    tools: NotRequired[list[str]]
    """Tools that the agent may use. remember_fact stores a fact about the user, after the user
    consents."""
    escalate_on: NotRequired[list[str]]
    """Words or phrases in a message that call for a person, in addition to plain requests such
    as “talk to a human”."""
    escalate_after_failures: NotRequired[int | None]
    """Number of failed replies in a row in a thread after which a person is called. Blank:
    never."""
    hands_to: NotRequired[list[str]]
    """Agents to which the language model may hand a conversation, with the tool hand_to_agent."""
    hand_over_on: dict[str, str]
    """Words or phrases in a message that hand the conversation to another agent, each with
    that agent's id: {'invoice': '0b6ef0bd-…'}."""
    hand_back_on: NotRequired[list[str]]
    """Words or phrases in a message that return a conversation to the previous agent."""
    extracts_facts: NotRequired[bool]
    """Extract facts from idle conversations. The deployment must have a language model."""
    extraction_model: NotRequired[str]
    """Model that extracts facts. Blank: the agent's model."""
    extraction_idle_seconds: NotRequired[int]
    """A conversation is idle after this many seconds without a message."""
    extraction_batch_size: NotRequired[int]
    """Maximum number of messages in one request to the language model, 1 to 200. A
    conversation with this many new messages is processed at once."""
    extraction_max_tokens_per_day: NotRequired[int | None]
    """Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank:
    no limit."""
    fact_review: NotRequired[Literal["none", "doubtful", "all"]]
    """Which extracted facts a person confirms before agents use them."""
    fact_review_by_slot: dict[str, Literal["none", "doubtful", "all"]]
    """Different rules for single slots, such as {'diet': 'all', 'hobby': 'none'}."""
    created_at: str
    """Time of creation."""


class AgentChanges(TypedDict):
    """The fields of an agent to change. Omitted fields are unchanged."""

    name: NotRequired[str]
    """The name for programs and people. Unique in the tenant, and not a UUID."""
    system_prompt: NotRequired[str]
    """The agent's purpose and instructions. Every prompt begins with them."""
    identity: NotRequired[str]
    """The agent's identity: “You are Ada, the librarian …”"""
    persona: NotRequired[str]
    """The agent's style: tone, language, manners."""
    model: NotRequired[str]
    """Name of the language model for the deployment's server, and for language models of the
    tenant without a name of a model. Blank: the deployment's model of the tier."""
    model_tier: NotRequired[Literal["fast", "reasoning"]]
    """fast: short contexts and low cost. reasoning: long contexts."""
    language_models: NotRequired[list[str]]
    """Names of the tenant's language models that answer, in this order: the next one is called
    if one fails. None: the tenant's default models."""
    reranker: NotRequired[str]
    """Name of the tenant's reranker, which sorts recalled memories. Blank: none."""
    accepts_client_instructions: NotRequired[bool]
    """Follow the system and developer messages that an application sends through OpenAI's
    interface, after the agent's own instructions. Those of a bound key are never followed."""
    max_completion_tokens: NotRequired[int | None]
    """Maximum number of tokens in one answer of the language model. An application may ask for
    fewer. Blank: only the model's own limit."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no
    limit."""
    is_active: NotRequired[bool]
    """An inactive agent accepts no messages; its memory stays."""
    conversation_pause_hours: NotRequired[int]
    """After this many hours without a message, a new conversation begins: earlier turns are
    recalled, instead of being turns of the prompt."""
    language: NotRequired[
        Literal["en", "de", "es", "fr", "pt", "pl", "tr", "nl", "it", "sv", "da", "nb", "fi", "id"]
        | Literal[""]
    ]
    """Language in which all Latin words of messages and questions are searched. Blank: that of
    the user, or else of each text, by its frequent words."""
    time_zone: NotRequired[str]
    """Time zone of users without one of their own, such as Europe/Berlin, for times in prompts
    and the days of messages. Blank: UTC."""
    recall_mode: NotRequired[Literal["hybrid", "vector"]]
    """How the agent searches memories."""
    recall_top_k: NotRequired[int | None]
    """Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10)."""
    recall_gate: NotRequired[bool]
    """Leave out memories that are probably irrelevant, all of them if necessary."""
    recall_preset: NotRequired[Literal["precise", "balanced", "thorough"]]
    """With the gate: how strict recall is. Choosing a preset clears the agent's own
    thresholds."""
    recall_open_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has
    at least this gate value. Blank: the preset's."""
    recall_keep_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate
    value. Blank: the preset's."""
    recall_neighbours: NotRequired[int | None]
    """Number of turns before and after a memory that are included with it, 0 to 10. Blank: as
    measured (0)."""
    recall_weights: NotRequired[RecallWeights]
    """Weights of the ranking that differ from the measured ones, such as {'time': 1}."""
    tools: NotRequired[list[Literal["remember_fact"]]]
    """Tools that the agent may use. remember_fact stores a fact about the user, after the user
    consents."""
    escalate_on: NotRequired[list[str]]
    """Words or phrases in a message that call for a person, in addition to plain requests such
    as “talk to a human”."""
    escalate_after_failures: NotRequired[int | None]
    """Number of failed replies in a row in a thread after which a person is called. Blank:
    never."""
    hands_to: NotRequired[list[str]]
    """Agents to which the language model may hand a conversation, with the tool hand_to_agent.
    Names or ids."""
    hand_over_on: NotRequired[dict[str, str]]
    """Words or phrases in a message that hand the conversation to another agent, each with
    that agent's id: {'invoice': '0b6ef0bd-…'}. A name is accepted too."""
    hand_back_on: NotRequired[list[str]]
    """Words or phrases in a message that return a conversation to the previous agent."""
    extracts_facts: NotRequired[bool]
    """Extract facts from idle conversations. The deployment must have a language model."""
    extraction_model: NotRequired[str]
    """Model that extracts facts. Blank: the agent's model."""
    extraction_idle_seconds: NotRequired[int]
    """A conversation is idle after this many seconds without a message."""
    extraction_batch_size: NotRequired[int]
    """Maximum number of messages in one request to the language model, 1 to 200. A
    conversation with this many new messages is processed at once."""
    extraction_max_tokens_per_day: NotRequired[int | None]
    """Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank:
    no limit."""
    fact_review: NotRequired[Literal["none", "doubtful", "all"]]
    """Which extracted facts a person confirms before agents use them."""
    fact_review_by_slot: NotRequired[dict[str, Literal["none", "doubtful", "all"]]]
    """Different rules for single slots, such as {'diet': 'all', 'hobby': 'none'}."""


class NewAgent(TypedDict):
    """The fields of a new agent."""

    name: str
    """The name for programs and people. Unique in the tenant, and not a UUID."""
    system_prompt: NotRequired[str]
    """The agent's purpose and instructions. Every prompt begins with them."""
    identity: NotRequired[str]
    """The agent's identity: “You are Ada, the librarian …”"""
    persona: NotRequired[str]
    """The agent's style: tone, language, manners."""
    model: NotRequired[str]
    """Name of the language model for the deployment's server, and for language models of the
    tenant without a name of a model. Blank: the deployment's model of the tier."""
    model_tier: NotRequired[Literal["fast", "reasoning"]]
    """fast: short contexts and low cost. reasoning: long contexts."""
    language_models: NotRequired[list[str]]
    """Names of the tenant's language models that answer, in this order: the next one is called
    if one fails. None: the tenant's default models."""
    reranker: NotRequired[str]
    """Name of the tenant's reranker, which sorts recalled memories. Blank: none."""
    accepts_client_instructions: NotRequired[bool]
    """Follow the system and developer messages that an application sends through OpenAI's
    interface, after the agent's own instructions. Those of a bound key are never followed."""
    max_completion_tokens: NotRequired[int | None]
    """Maximum number of tokens in one answer of the language model. An application may ask for
    fewer. Blank: only the model's own limit."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no
    limit."""
    is_active: NotRequired[bool]
    """An inactive agent accepts no messages; its memory stays."""
    conversation_pause_hours: NotRequired[int]
    """After this many hours without a message, a new conversation begins: earlier turns are
    recalled, instead of being turns of the prompt."""
    language: NotRequired[
        Literal["en", "de", "es", "fr", "pt", "pl", "tr", "nl", "it", "sv", "da", "nb", "fi", "id"]
        | Literal[""]
    ]
    """Language in which all Latin words of messages and questions are searched. Blank: that of
    the user, or else of each text, by its frequent words."""
    time_zone: NotRequired[str]
    """Time zone of users without one of their own, such as Europe/Berlin, for times in prompts
    and the days of messages. Blank: UTC."""
    recall_mode: NotRequired[Literal["hybrid", "vector"]]
    """How the agent searches memories."""
    recall_top_k: NotRequired[int | None]
    """Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10)."""
    recall_gate: NotRequired[bool]
    """Leave out memories that are probably irrelevant, all of them if necessary."""
    recall_preset: NotRequired[Literal["precise", "balanced", "thorough"]]
    """With the gate: how strict recall is. Choosing a preset clears the agent's own
    thresholds."""
    recall_open_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has
    at least this gate value. Blank: the preset's."""
    recall_keep_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate
    value. Blank: the preset's."""
    recall_neighbours: NotRequired[int | None]
    """Number of turns before and after a memory that are included with it, 0 to 10. Blank: as
    measured (0)."""
    recall_weights: NotRequired[RecallWeights]
    """Weights of the ranking that differ from the measured ones, such as {'time': 1}."""
    tools: NotRequired[list[Literal["remember_fact"]]]
    """Tools that the agent may use. remember_fact stores a fact about the user, after the user
    consents."""
    escalate_on: NotRequired[list[str]]
    """Words or phrases in a message that call for a person, in addition to plain requests such
    as “talk to a human”."""
    escalate_after_failures: NotRequired[int | None]
    """Number of failed replies in a row in a thread after which a person is called. Blank:
    never."""
    hands_to: NotRequired[list[str]]
    """Agents to which the language model may hand a conversation, with the tool hand_to_agent.
    Names or ids."""
    hand_over_on: NotRequired[dict[str, str]]
    """Words or phrases in a message that hand the conversation to another agent, each with
    that agent's id: {'invoice': '0b6ef0bd-…'}. A name is accepted too."""
    hand_back_on: NotRequired[list[str]]
    """Words or phrases in a message that return a conversation to the previous agent."""
    extracts_facts: NotRequired[bool]
    """Extract facts from idle conversations. The deployment must have a language model."""
    extraction_model: NotRequired[str]
    """Model that extracts facts. Blank: the agent's model."""
    extraction_idle_seconds: NotRequired[int]
    """A conversation is idle after this many seconds without a message."""
    extraction_batch_size: NotRequired[int]
    """Maximum number of messages in one request to the language model, 1 to 200. A
    conversation with this many new messages is processed at once."""
    extraction_max_tokens_per_day: NotRequired[int | None]
    """Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank:
    no limit."""
    fact_review: NotRequired[Literal["none", "doubtful", "all"]]
    """Which extracted facts a person confirms before agents use them."""
    fact_review_by_slot: NotRequired[dict[str, Literal["none", "doubtful", "all"]]]
    """Different rules for single slots, such as {'diet': 'all', 'hobby': 'none'}."""


class AgentOfUser(TypedDict):
    """An agent that has talked with the user."""

    id: str
    name: str
    messages: int
    """Messages of user and agent."""


class AgentVersion(TypedDict):
    """The settings of an agent after a change."""

    number: int
    """1 for the first version of the agent."""
    settings: dict[str, Any]
    """All settings of the agent, by column."""
    changed: list[str]
    """Names of the settings that differ from the version before."""
    restores: int | None
    """Number of the version that this one restores."""
    note: str
    """The author's note on the change."""
    author: str
    """Kind and id of the author, such as person:7; system: for the platform."""
    author_name: str
    """Name of the author at that time."""
    created_at: str
    """When the agent changed."""


class AnswerMessage(TypedDict):
    """The message with a person's answer."""

    id: str
    content: str
    """The text, verbatim."""
    name: NotRequired[str]
    """The speaker's display name."""
    in_reply_to: str | None
    """The user's message that it replies to; empty if none waited."""
    created_at: str
    """Time of the message; for imported turns, the original time."""


class ApiKey(TypedDict):
    """An API key, without its secret."""

    id: str
    url: str
    name: str
    """Name of the program that uses it."""
    prefix: str
    """Part of the key by which it is found."""
    scopes: list[Literal["read", "write", "erase", "keys"]]
    """Its scopes."""
    agent: str | None
    """The only agent that it can use."""
    agent_id: str | None
    """The only agent that this key can use. Empty: all agents."""
    user_id: str | None
    """The only end user that this key can write for and read. Empty: all users."""
    parent_id: str | None
    """The key that made it, with which it is revoked. Empty: none."""
    created_at: str
    """Time of creation."""
    last_used_at: str | None
    """When it was last used, to within a few minutes."""
    expires_at: str | None
    """The key is refused from this time on. Empty: it does not expire."""
    revoked_at: str | None
    """When it was revoked."""


class ChangedFacts(TypedDict):
    """The changed facts of a batch, in the order of the request."""

    results: list[Fact]


class ChatMessage(TypedDict):
    """A message of a chat."""

    role: str
    content: str


class Comparison(TypedDict):
    """The accepted candidates of two runs, by subject, slot and value."""

    both: list[dict[str, Any]]
    """Candidates of both runs, as the first has them."""
    only_first: list[dict[str, Any]]
    """Only of this run."""
    only_second: list[dict[str, Any]]
    """Candidates of the other run alone."""
    changed: list[list[dict[str, Any]]]
    """Pairs of candidates with the same subject and slot, and different values."""


class Compiled(TypedDict):
    """The sections that fit into one prompt, and the prompt."""

    system_prompt: str
    messages: list[ChatMessage]
    """The newest turns of the session."""
    context: str
    """Facts and recalled turns, one per line."""
    task: str
    token_usage: TokenUsage
    model_tier: str
    budget: int
    """Token limit of a prompt."""
    left_out: LeftOut
    sources: list[Source]
    """The source of each item of the context, in order."""
    prompt: list[ChatMessage]
    """For a chat model."""
    reranker: Reranker | None
    """Null: the agent has none."""


class Conversation(TypedDict):
    """An agent's conversation with a user in one thread."""

    url: str
    """The URL of the transcript."""
    agent: str
    """The agent's name."""
    agent_id: str
    user_id: str
    thread_id: str
    title: str
    """The title that a program set, or empty."""
    metadata: dict[str, Any]
    """What a program set, or empty."""
    messages: int
    """Number of turns, of user and agent."""
    first_at: str
    """Time of the first message."""
    last_at: str
    """Time of the last message."""
    last_role: Literal["user", "assistant"]
    """Role of the author of the latest message."""
    last_content: str
    """The first 200 characters of the last message."""


class ConversationRow(TypedDict):
    """What programs have set of a conversation."""

    agent: str
    """The agent's name."""
    agent_id: str
    """The agent that this memory belongs to."""
    user_id: str
    """The user's id in the channel, such as a Slack user id."""
    thread_id: str
    """The conversation."""
    title: str
    """The title."""
    metadata: dict[str, Any]


class DraftFields(TypedDict):
    """Settings of a draft of an agent. Omitted settings are the agent's."""

    system_prompt: NotRequired[str]
    """The agent's purpose and instructions. Every prompt begins with them."""
    identity: NotRequired[str]
    """The agent's identity: “You are Ada, the librarian …”"""
    persona: NotRequired[str]
    """The agent's style: tone, language, manners."""
    model: NotRequired[str]
    """Name of the language model for the deployment's server, and for language models of the
    tenant without a name of a model. Blank: the deployment's model of the tier."""
    model_tier: NotRequired[Literal["fast", "reasoning"]]
    """fast: short contexts and low cost. reasoning: long contexts."""
    language_models: NotRequired[list[str]]
    """Names of the tenant's language models that answer, in this order: the next one is called
    if one fails. None: the tenant's default models."""
    reranker: NotRequired[str]
    """Name of the tenant's reranker, which sorts recalled memories. Blank: none."""
    max_completion_tokens: NotRequired[int | None]
    """Maximum number of tokens in one answer of the language model. An application may ask for
    fewer. Blank: only the model's own limit."""
    recall_mode: NotRequired[Literal["hybrid", "vector"]]
    """How the agent searches memories."""
    recall_top_k: NotRequired[int | None]
    """Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10)."""
    recall_gate: NotRequired[bool]
    """Leave out memories that are probably irrelevant, all of them if necessary."""
    recall_preset: NotRequired[Literal["precise", "balanced", "thorough"]]
    """With the gate: how strict recall is. Choosing a preset clears the agent's own
    thresholds."""
    recall_open_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has
    at least this gate value. Blank: the preset's."""
    recall_keep_at: NotRequired[float | None]
    """Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate
    value. Blank: the preset's."""
    recall_neighbours: NotRequired[int | None]
    """Number of turns before and after a memory that are included with it, 0 to 10. Blank: as
    measured (0)."""
    recall_weights: NotRequired[RecallWeights]
    """Weights of the ranking that differ from the measured ones, such as {'time': 1}."""
    tools: NotRequired[list[Literal["remember_fact"]]]
    """Tools that the agent may use. remember_fact stores a fact about the user, after the user
    consents."""
    escalate_on: NotRequired[list[str]]
    """Words or phrases in a message that call for a person, in addition to plain requests such
    as “talk to a human”."""
    hands_to: NotRequired[list[str]]
    """Agents to which the language model may hand a conversation, with the tool hand_to_agent.
    Names or ids."""
    hand_over_on: NotRequired[dict[str, str]]
    """Words or phrases in a message that hand the conversation to another agent, each with
    that agent's id: {'invoice': '0b6ef0bd-…'}. A name is accepted too."""
    hand_back_on: NotRequired[list[str]]
    """Words or phrases in a message that return a conversation to the previous agent."""


class DryReply(TypedDict):
    """The result of a dry run."""

    reply: str
    """The reply. Empty: no reply, or none yet."""
    agent: str
    """Name of the agent that answers."""
    agent_id: str
    steps: list[str]
    """Decision and reason."""
    problem: str
    """Why the language model gave no usable answer. Empty: there was no problem."""
    asked_at: str
    """When the message was sent."""
    answered_at: str
    """When the reply was there."""
    recall: DryTrace | None
    """null: no model call."""


class DryRun(TypedDict):
    """The replies of an agent and of its draft."""

    user_id: str | None
    """The person who writes."""
    changes: list[str]
    """Names of the settings in which the draft differs."""
    live: DryReply
    """The result of the current agent."""
    draft: DryReply | None
    """The result of the draft. null: no draft, or one without changes."""


class DryTrace(TypedDict):
    """The recall and the prompt of a reply, as in a recall event."""

    hits: list[dict[str, Any]]
    """The memories found, best first, with the score of every channel, and the calibrated
    `probability`."""
    cut: list[dict[str, Any]]
    """The best of the memories left out, with the reason; otherwise as in `hits`."""
    facts: list[dict[str, Any]]
    """The facts considered, each with its reason."""
    injected: list[str]
    """The memories in the prompt, verbatim."""
    reranker: dict[str, Any] | None
    """The order of the agent's reranker as `ranked`, with scores, or the `problem`; null:
    there is none."""
    prompt: dict[str, Any] | None
    """The prompt as it was sent, with the tokens of each section; null if not kept."""
    query: str
    """The query."""
    abstained: bool
    """No memory was relevant enough."""
    embedding_model: str
    milliseconds: float
    """Duration of the recall."""


class Erasure(TypedDict):
    """An erasure request and, once done, its receipt."""

    url: str
    id: str
    user_id: str
    """The user; once done, a keyed digest: `erased:…`."""
    user_ids: list[str]
    """All ids of the person: the given id and the ids linked to it. Once done, their digests."""
    agent_id: str | None
    """Null: all agents."""
    thread_id: NotRequired[str | None]
    """The conversation that is erased, or that has the erased message. Null: the user is
    erased."""
    message_id: NotRequired[str | None]
    """The message."""
    all_replies: NotRequired[bool]
    """All replies to others that were written with the user's words are erased."""
    reply_ids: list[str]
    """Further replies."""
    reason: str
    requested_by: str
    created_at: str
    state: Literal["requested", "running", "done"]
    """done: the receipt lists the data that was removed, and data that is removed later."""
    progress: ErasureProgress | None
    """While it is running."""
    problem: str
    """Why it has not finished yet, or empty."""
    done_at: str | None
    receipt: Any
    """The numbers of rows removed from each table, with digests of the ids and without texts.
    `found` is false if nothing was stored about the user. `replies_to_others` has the
    numbers of replies to others that were chosen (or `all`), erased and kept. `storage`
    lists the rewritten files, and when other files lose the removed values."""


class ErasureProgress(TypedDict):
    """The progress of an erasure."""

    step: str
    """The current step."""
    messages_removed: int
    """Number of messages removed."""
    messages: int
    """Number of messages found so far."""


class Escalation(TypedDict):
    """A thread in which a person or another agent answers, or has answered."""

    id: str
    url: str
    state: Literal["open", "resolved"]
    """open: a person or `to_agent` answers instead of the thread's own agent."""
    agent: str
    """The agent's name."""
    agent_id: str
    """The agent that this memory belongs to."""
    user_id: str
    """The user's id in the channel, such as a Slack user id."""
    thread_id: str
    """The conversation's id in the channel."""
    channel: str
    """The channel: rest, slack …"""
    message_id: NotRequired[str | None]
    """The message that caused the escalation. Its reply announces that a person will answer."""
    to_agent: str
    """The name of the agent that answers instead; empty if a person answers."""
    to_agent_id: NotRequired[str | None]
    """The agent that answers instead; empty if a person answers."""
    from_agent_id: NotRequired[str | None]
    """The previous agent, which can get the conversation back."""
    opened_by: Literal["user", "rule", "agent", "program", "person"]
    """The cause of the escalation."""
    opened_by_name: NotRequired[str]
    """The name of the program or person."""
    reason: str
    """The reason."""
    opened_at: str
    """When it was opened."""
    assigned_to: NotRequired[str]
    """Username of the colleague to whom it is assigned; empty: unassigned."""
    resolved_at: NotRequired[str | None]
    """When it was resolved; empty while it is open."""
    resolved_by: NotRequired[str]
    """The person who resolved it."""
    note: NotRequired[str]
    """Note on the outcome, for the record."""
    outcome: Literal["resolved", "handed_on", "handed_back", "to_person"] | Literal[""]
    """How it ended; empty while it is open."""


class Event(TypedDict):
    """An event."""

    id: str
    """Its id, which is `webhook-id` of a webhook."""
    type: Literal[
        "message.answered",
        "message.failed",
        "message.closed",
        "escalation.opened",
        "escalation.waiting",
        "escalation.answered",
        "escalation.resolved",
        "tool_call.waiting",
        "fact.proposed",
        "fact.active",
        "fact.superseded",
        "fact.retracted",
        "erasure.requested",
        "erasure.done",
        "import.done",
        "quota.reached",
        "job.failed",
    ]
    """The type."""
    timestamp: str
    """When it happened."""
    data: EventData
    """Its object."""


class EventData(TypedDict):
    """The object of an event."""

    id: str
    """Id of the message, escalation, fact …"""
    agent_id: str | None
    """The agent."""
    user_id: str | None
    """The user."""
    thread_id: str | None
    """The conversation."""
    message_id: NotRequired[str]
    """The message with the answer, of `escalation.answered`."""
    quota: NotRequired[str]
    """The quota, of `quota.reached`."""


class Events(TypedDict):
    """Events in their order."""

    events: list[Event]
    """The events after `after`, oldest first."""
    after: int
    """The value of `after` for the next request."""
    has_more: bool
    """Whether there are more events already."""


class Evidence(TypedDict):
    """A quote from a message as the evidence of a fact."""

    message_id: str
    """The message."""
    url: str
    """The message's address."""
    start: int
    """First character of the quote in the message."""
    end: int
    """Position after the last character of the quote."""
    quote: str
    """The words of the message, verbatim."""
    run_id: str | None
    """The extraction run that found it."""


class Exclusion(TypedDict):
    """A message, or some of its words, excluded from recall."""

    id: str
    message_id: str
    """The message."""
    start: int | None
    """First character of the excluded words. Empty: the whole message is excluded."""
    end: int | None
    """Position after the last character of the excluded words."""
    memory_id: str | None
    """The corrected fact, or its old version. Empty: the message was excluded without a
    correction."""
    echo_of: str | None
    """The exclusion of the message that this reply repeats. Empty: none."""
    reason: str
    """The author's reason."""
    author_kind: Literal["person", "program", "operator", "run", "system"]
    """The kind of the author."""
    author_name: str
    """Name of the author."""
    created_at: str
    """When it was excluded."""


class Export(TypedDict):
    """All data of a person. Further members are lists of rows by their kind."""

    user_id: str
    """The user."""
    user_ids: list[str]
    """Ids of the person."""
    exported_at: str
    """When it was exported."""
    messages: list[dict[str, Any]]
    """Their messages."""
    facts: list[dict[str, Any]]
    """Facts about them."""


class Extraction(TypedDict):
    """The progress of extraction in a conversation."""

    id: str
    agent: str
    """The agent's name."""
    agent_id: str
    user_id: str
    thread_id: str
    """The conversation."""
    state: Literal["queued", "failed", "processed"]
    """queued: messages wait, or are waited for; failed: no further attempt is made; processed:
    no message waits."""
    last_number: int
    """`number` of the last processed one, or 0."""
    processed_at: str | None
    """When the last run ended."""
    attempts: int
    """Attempts since the last success."""
    last_error: str
    """Why the last attempt failed, or why the run waits."""
    due_at: str | None
    """When the next attempt is due. null: nothing waits."""


class ExtractionRun(TypedDict):
    """A run, without its candidates."""

    id: str
    url: str
    """The URL with all fields."""
    agent: str
    """The agent's name."""
    agent_id: str
    """The agent that this memory belongs to."""
    user_id: str
    """The user's id in the channel, such as a Slack user id."""
    thread_id: str
    """The conversation."""
    state: Literal["running", "preview", "applied", "failed", "rolled_back"]
    """A preview changes no facts."""
    message_ids: list[str]
    """The messages that were processed, in their order."""
    replay_of: str | None
    """The run that this one replays."""
    requested_by: str
    """The person or key that requested it. Empty: the platform."""
    model: str
    """The language model."""
    endpoint: str
    """Host and port of the language model's server."""
    response_format: str
    """json_schema, json_object or text: what the endpoint supports."""
    prompt_digest: str
    """SHA-256 of the instructions."""
    prompt_tokens: int
    """Tokens sent."""
    completion_tokens: int
    """Tokens received."""
    cost: str
    """Cost, by the prices of the language models at that time."""
    result: dict[str, Any]
    """Counts by outcome, and refused ones by reason."""
    error: str
    """Why it failed."""
    created_at: str
    """Time of the first message."""
    ended_at: str | None
    """When it ended."""


class ExtractionRunInFull(TypedDict):
    """A run with its candidates and the answer of the language model."""

    id: str
    url: str
    """The URL with all fields."""
    agent: str
    """The agent's name."""
    agent_id: str
    """The agent that this memory belongs to."""
    user_id: str
    """The user's id in the channel, such as a Slack user id."""
    thread_id: str
    """The conversation."""
    state: Literal["running", "preview", "applied", "failed", "rolled_back"]
    """A preview changes no facts."""
    message_ids: list[str]
    """The messages that were processed, in their order."""
    replay_of: str | None
    """The run that this one replays."""
    requested_by: str
    """The person or key that requested it. Empty: the platform."""
    model: str
    """The language model."""
    endpoint: str
    """Host and port of the language model's server."""
    response_format: str
    """json_schema, json_object or text: what the endpoint supports."""
    prompt_digest: str
    """SHA-256 of the instructions."""
    prompt_tokens: int
    """Tokens sent."""
    completion_tokens: int
    """Tokens received."""
    cost: str
    """Cost, by the prices of the language models at that time."""
    result: dict[str, Any]
    """Counts by outcome, and refused ones by reason."""
    error: str
    """Why it failed."""
    created_at: str
    """Time of the first message."""
    ended_at: str | None
    """When it ended."""
    candidates: list[dict[str, Any]]
    """Each candidate with its outcome and its fact."""
    output: str
    """The answer of the model, verbatim."""


class Fact(TypedDict):
    """A fact, or an earlier version."""

    memory_id: str
    """The fact; its id never changes."""
    url: str
    """The fact's address."""
    agent: str | None
    """The agent that can use it; null: all."""
    agent_id: str | None
    """The agent that knows the fact. Empty: all agents."""
    user_id: str | None
    """The user that the fact is about. Empty: no user."""
    external_id: str | None
    """The id that the program chose which stored it. Empty: the text identifies it."""
    content: str
    """The fact, in words."""
    metadata: dict[str, Any]
    created_at: str
    """When it was first stored."""
    updated_at: str
    """When it was changed last."""
    valid_from: str
    """Start of validity."""
    valid_to: str | None
    """End of validity. Empty: still valid."""
    expires_at: str | None
    """Searches do not find it from this time on."""
    version_id: str
    """The version's id; for the current version the fact's id."""
    supersedes: str | None
    """The version that this one replaced."""
    subject: str
    """The name of the person or thing that the fact is about."""
    slot: str
    """The attribute of the subject, in snake_case, such as home_city. Empty: none."""
    value: str
    """The value of the slot, such as Oslo."""
    is_multi_valued: bool
    """Whether several values of the slot can be valid at once."""
    kind: Literal["observed", "inferred", "entered"]
    """Whether it was stated in a message, concluded, or entered."""
    asserter: str
    """Name of the person who stated it."""
    state: Literal["proposed", "active", "superseded", "retracted", "rejected"]
    """Only active facts are given to agents."""
    valid_from_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid from” is known."""
    valid_to_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid until” is known."""
    learned_at: str | None
    """When the earliest message of its evidence was sent. Empty: when it was stored."""
    retracted_at: str | None
    """When it was retracted."""
    replaces: str | None
    """The fact that this one supersedes, or would supersede if it is confirmed."""
    review_reason: str
    """Why a person must review it, such as conflict or health."""
    run_id: str | None
    """The extraction run that proposed it."""


class FactChange(TypedDict):
    """The fields of a fact to change. The former values are kept as a version."""

    content: NotRequired[str]
    """The fact, in words."""
    metadata: NotRequired[dict[str, Any]]
    """A JSON object that searches can filter by. It is merged into the metadata of a stored
    fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a name, other
    values replace."""
    valid_from: NotRequired[str]
    """Start of the new version's validity: after the old version's, not in the future.
    Default: now."""
    valid_to: NotRequired[str | None]
    """End of its validity; null: still valid."""
    expires_at: NotRequired[str | None]
    """Searches do not find it from this time on."""
    reason: NotRequired[str]
    """The reason, for the fact's events."""
    value: NotRequired[str]
    """The value of the fact's slot, such as Oslo. Default: the words of the new content that
    replace it, or it, if the content still has it."""


class FactEvent(TypedDict):
    """A change of a fact, and its author."""

    id: str
    action: Literal[
        "enter", "propose", "confirm", "change", "supersede", "retract", "reject", "restore"
    ]
    """The change."""
    author_kind: Literal["person", "program", "operator", "run", "system"]
    """The kind of the author."""
    author_id: str
    """Id of the person, the API key or the extraction run."""
    author_name: str
    """Name of the author."""
    reason: str
    """The author's reason."""
    other_id: str | None
    """The fact that superseded this one, or was superseded."""
    created_at: str
    """When it happened."""


class FactInFull(TypedDict):
    """A fact, or an earlier version, with its evidence."""

    memory_id: str
    """The fact; its id never changes."""
    url: str
    """The fact's address."""
    agent: str | None
    """The agent that can use it; null: all."""
    agent_id: str | None
    """The agent that knows the fact. Empty: all agents."""
    user_id: str | None
    """The user that the fact is about. Empty: no user."""
    external_id: str | None
    """The id that the program chose which stored it. Empty: the text identifies it."""
    content: str
    """The fact, in words."""
    metadata: dict[str, Any]
    created_at: str
    """When it was first stored."""
    updated_at: str
    """When it was changed last."""
    valid_from: str
    """Start of validity."""
    valid_to: str | None
    """End of validity. Empty: still valid."""
    expires_at: str | None
    """Searches do not find it from this time on."""
    version_id: str
    """The version's id; for the current version the fact's id."""
    supersedes: str | None
    """The version that this one replaced."""
    subject: str
    """The name of the person or thing that the fact is about."""
    slot: str
    """The attribute of the subject, in snake_case, such as home_city. Empty: none."""
    value: str
    """The value of the slot, such as Oslo."""
    is_multi_valued: bool
    """Whether several values of the slot can be valid at once."""
    kind: Literal["observed", "inferred", "entered"]
    """Whether it was stated in a message, concluded, or entered."""
    asserter: str
    """Name of the person who stated it."""
    state: Literal["proposed", "active", "superseded", "retracted", "rejected"]
    """Only active facts are given to agents."""
    valid_from_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid from” is known."""
    valid_to_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid until” is known."""
    learned_at: str | None
    """When the earliest message of its evidence was sent. Empty: when it was stored."""
    retracted_at: str | None
    """When it was retracted."""
    replaces: str | None
    """The fact that this one supersedes, or would supersede if it is confirmed."""
    review_reason: str
    """Why a person must review it, such as conflict or health."""
    run_id: str | None
    """The extraction run that proposed it."""
    evidence: list[Evidence]
    """The evidence of the fact; empty for a fact that a person or a program entered."""


class FactSearchResult(TypedDict):
    """The facts of a search, best first."""

    results: list[FoundFact]


class Failure(TypedDict):
    """Why a message has no reply yet."""

    code: str
    """The code of the last error, for programs: llm_unavailable, llm_timeout, llm_refused,
    llm_reply_invalid, time_limit, worker_lost, internal_error; closed for a message with
    the status `closed` …"""
    detail: str
    """The same as a sentence, for people."""
    attempts: int
    """The number of attempts, with the current one."""
    next_attempt_at: str | None
    """The time of the next attempt; null if there is none."""


class FoundFact(TypedDict):
    """A fact found by a search."""

    memory_id: str
    """The fact; its id never changes."""
    url: str
    """The fact's address."""
    agent: str | None
    """The agent that can use it; null: all."""
    agent_id: str | None
    """The agent that knows the fact. Empty: all agents."""
    user_id: str | None
    """The user that the fact is about. Empty: no user."""
    external_id: str | None
    """The id that the program chose which stored it. Empty: the text identifies it."""
    content: str
    """The fact, in words."""
    metadata: dict[str, Any]
    created_at: str
    """When it was first stored."""
    updated_at: str
    """When it was changed last."""
    valid_from: str
    """Start of validity."""
    valid_to: str | None
    """End of validity. Empty: still valid."""
    expires_at: str | None
    """Searches do not find it from this time on."""
    version_id: str
    """The version's id; for the current version the fact's id."""
    supersedes: str | None
    """The version that this one replaced."""
    subject: str
    """The name of the person or thing that the fact is about."""
    slot: str
    """The attribute of the subject, in snake_case, such as home_city. Empty: none."""
    value: str
    """The value of the slot, such as Oslo."""
    is_multi_valued: bool
    """Whether several values of the slot can be valid at once."""
    kind: Literal["observed", "inferred", "entered"]
    """Whether it was stated in a message, concluded, or entered."""
    asserter: str
    """Name of the person who stated it."""
    state: Literal["proposed", "active", "superseded", "retracted", "rejected"]
    """Only active facts are given to agents."""
    valid_from_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid from” is known."""
    valid_to_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid until” is known."""
    learned_at: str | None
    """When the earliest message of its evidence was sent. Empty: when it was stored."""
    retracted_at: str | None
    """When it was retracted."""
    replaces: str | None
    """The fact that this one supersedes, or would supersede if it is confirmed."""
    review_reason: str
    """Why a person must review it, such as conflict or health."""
    run_id: str | None
    """The extraction run that proposed it."""
    score: float
    """Cosine similarity to the query, -1 to 1."""


class HistoryImport(TypedDict):
    """The state of an import, and its report."""

    id: str
    url: str
    """Its address."""
    state: Literal["waiting", "previewed", "imported", "failed"]
    file_name: str
    """Name of the file."""
    dry_run: bool
    """Whether nothing is stored."""
    report: Any
    """Conversations, authors, and what is left out."""
    error: str
    """Why it failed."""
    created_at: str
    """When the file was sent."""
    finished_at: str | None
    """When the preview or the import ended."""


class Identity(TypedDict):
    """The id of a sender in a channel, and the user that its messages belong to."""

    id: str
    url: str
    channel: str
    """slack …"""
    workspace: NotRequired[str]
    """The workspace in the channel, if the channel has workspaces."""
    native_id: str
    """The sender's id in the channel."""
    name: NotRequired[str]
    """The sender's name in the channel."""
    own_id: str
    """The identity's own user id; no other identity has the same."""
    user_id: str
    """The user that the identity belongs to."""
    created_at: str
    """Time of the first message."""
    linked_at: NotRequired[str | None]
    """When the identity was linked to another user."""
    linked_by: NotRequired[str]
    """The person who linked it."""


class ImportResult(TypedDict):
    """The results for all messages, in the order of the request."""

    created: int
    exists: int
    invalid: int
    indexed: bool
    """Whether recall and search can find all of them."""
    results: list[LineResult]


class Item(TypedDict):
    """An item, as it was added."""

    id: str
    item: dict[str, Any]
    message_id: str | None
    """Its message in the transcript. Null: it has none."""
    created_at: str
    """When it was added."""


class LanguageModel(TypedDict):
    """A language model of the tenant, without its key."""

    id: str
    url: str
    """Where it is."""
    name: str
    """The name by which agents refer to it. Unique in the tenant."""
    kind: NotRequired[Literal["language_model", "reranker"]]
    """A reranker sorts the memories of agents that name it. Its server is asked at /rerank
    below the address."""
    endpoint: NotRequired[str]
    """Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a
    pool. Blank: the deployment's server, with its key and its prices."""
    model: NotRequired[str]
    """Name of the model for the server. Blank: the agent's model, or else its tier."""
    prompt_price: NotRequired[str]
    """Price of a million input tokens."""
    completion_price: NotRequired[str]
    """Price of a million output tokens."""
    timeout_seconds: NotRequired[int | None]
    """Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one
    gets at most half of the time that is left. Blank: LLM_TIMEOUT."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of a day (UTC) the next model is called. Blank: no limit."""
    position: NotRequired[int | None]
    """Place among the models of agents without own ones, lowest first. Blank: it is only for
    agents that name it."""
    min_score: NotRequired[float | None]
    """Of a reranker: memories with a lower score are left out. Blank: none are."""
    is_active: NotRequired[bool]
    """Whether it is called."""
    has_key: bool
    """Whether it has a key."""
    created_at: str
    """Time of creation."""


class LanguageModelChanges(TypedDict):
    """The fields of a language model to change. Omitted fields are unchanged."""

    name: NotRequired[str]
    """The name by which agents refer to it."""
    kind: NotRequired[Literal["language_model", "reranker"]]
    """A reranker sorts the memories of agents that name it. Its server is asked at /rerank
    below the address."""
    endpoint: NotRequired[str]
    """Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a
    pool. Blank: the deployment's server, with its key and its prices."""
    model: NotRequired[str]
    """Name of the model for the server. Blank: the agent's model, or else its tier."""
    prompt_price: NotRequired[str]
    """Price of a million input tokens."""
    completion_price: NotRequired[str]
    """Price of a million output tokens."""
    timeout_seconds: NotRequired[int | None]
    """Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one
    gets at most half of the time that is left. Blank: LLM_TIMEOUT."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of a day (UTC) the next model is called. Blank: no limit."""
    position: NotRequired[int | None]
    """Place among the models of agents without own ones, lowest first. Blank: it is only for
    agents that name it."""
    min_score: NotRequired[float | None]
    """Of a reranker: memories with a lower score are left out. Blank: none are."""
    is_active: NotRequired[bool]
    """Whether it is called."""
    key: NotRequired[str]
    """The key of its server. No response shows it. Empty: none."""


class NewLanguageModel(TypedDict):
    """The fields of a language model."""

    name: str
    """The name by which agents refer to it."""
    kind: NotRequired[Literal["language_model", "reranker"]]
    """A reranker sorts the memories of agents that name it. Its server is asked at /rerank
    below the address."""
    endpoint: NotRequired[str]
    """Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a
    pool. Blank: the deployment's server, with its key and its prices."""
    model: NotRequired[str]
    """Name of the model for the server. Blank: the agent's model, or else its tier."""
    prompt_price: NotRequired[str]
    """Price of a million input tokens."""
    completion_price: NotRequired[str]
    """Price of a million output tokens."""
    timeout_seconds: NotRequired[int | None]
    """Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one
    gets at most half of the time that is left. Blank: LLM_TIMEOUT."""
    max_tokens_per_day: NotRequired[int | None]
    """After this many tokens of a day (UTC) the next model is called. Blank: no limit."""
    position: NotRequired[int | None]
    """Place among the models of agents without own ones, lowest first. Blank: it is only for
    agents that name it."""
    min_score: NotRequired[float | None]
    """Of a reranker: memories with a lower score are left out. Blank: none are."""
    is_active: NotRequired[bool]
    """Whether it is called."""
    key: NotRequired[str]
    """The key of its server. No response shows it. Empty: none."""


class LanguageModelTest(TypedDict):
    """What a language model can do, and how long it takes."""

    problem: str
    """Why it does not answer. Empty: it answers."""
    first_text_seconds: float | None
    """Until the first text. null: it does not stream."""
    seconds: float | None
    """Until the whole text. null: it does not answer."""
    streams: bool
    """Whether texts come in parts."""
    calls_tools: bool
    """Whether it called a tool."""
    follows_schema: bool
    """Whether its answer followed a JSON schema, which the extraction of facts uses."""


class LeftOut(TypedDict):
    """The numbers of turns and memories that did not fit."""

    messages: int
    """The oldest turns."""
    memories: int
    """The least relevant."""
    task: list[str]
    """Parts of the task that were cut or left out: `description`, and names of its fields."""


class LineError(TypedDict):
    """An error of one field of a message."""

    field: str
    """Empty: the message as a whole."""
    detail: str


class LineResult(TypedDict):
    """The result for one message. An invalid one has no ids and no time."""

    index: int
    """Its index in the request, from 0."""
    status: Literal["created", "exists", "invalid"]
    """created; exists: a message with this external_id was imported before and is unchanged;
    invalid: see error."""
    external_id: str | None
    """As it was sent, or computed."""
    message_id: str | None
    agent_id: str | None
    user_id: str | None
    thread_id: str | None
    created_at: str | None
    error: str
    """Why it is invalid; empty if it is valid."""
    errors: list[LineError]
    """The errors by field."""


class Memory(TypedDict):
    """A message found by recall."""

    message_id: str
    agent_id: str
    """The agent that remembers it."""
    external_id: str | None
    """Its id, if it was imported."""
    thread_id: str
    role: str
    """user or assistant."""
    name: str
    """The speaker's display name, or empty."""
    content: str
    created_at: str
    """The time of the message."""
    metadata: NotRequired[dict[str, Any]]
    """As it was sent, or empty."""
    score: float
    """Ranking score, comparable in this response only."""
    probability: float
    """Calibrated probability that it is relevant."""
    gate_value: NotRequired[float]
    """The gate's value, which is compared with the agent's thresholds; with explain."""
    channels: NotRequired[dict[str, float]]
    """The score of each channel before its weight; with explain."""


class MemoryToolResult(TypedDict):
    """The result of a call."""

    content: str
    """The `content` of the `tool_result` block."""
    is_error: bool
    """Its `is_error`."""


class Message(TypedDict):
    """A message, its status and its reply."""

    id: str
    status: Literal[
        "queued", "answered", "failed", "closed", "with_person", "awaiting_consent", "with_program"
    ]
    """closed: it gets no separate reply, because another reply or a person has settled it;
    `error` has the reason. with_person: a person answers in this thread. awaiting_consent:
    a tool call of the agent waits for the user. with_program: the program that sent it must
    send results of its tools. `waits_for` has the details."""
    url: str
    """The URL to poll."""
    agent: str
    """The name of the agent that it was sent to. Another one may answer, see `answered_by`."""
    agent_id: str
    user_id: str
    thread_id: str
    channel: str
    """The channel: rest, slack …"""
    name: str
    """The speaker's display name, or empty."""
    content: str
    metadata: dict[str, Any]
    """As it was sent, or empty."""
    created_at: str
    """When it was accepted."""
    indexed: bool
    """Whether recall and search can find it."""
    reply: Reply | None
    """Null until the status is `answered`."""
    waits_for: WaitsFor | None
    """The person or program that must act while the message is held; else null. The message is
    answered afterwards: poll `url`."""
    answered_by: str
    """Name of the agent or person that answered."""
    answered_by_id: str | None
    """The agent that answered; not `agent_id` if the thread was handed over. Null: a person,
    or a reply that is older than this field."""
    error: Failure | None
    """The last error, while the reply is retried and when it has failed, or why the message
    was closed."""


class ModelCall(TypedDict):
    """A call of a language model."""

    purpose: str
    """Purpose of the call, such as reply or extraction."""
    model: str
    """The language model."""
    language_model: str
    """Name of the tenant's language model. Empty: the deployment's."""
    outcome: Literal["done", "failed"] | Literal[""]
    """Empty: the process ended before the answer came."""
    prompt_tokens: int
    """Tokens sent."""
    completion_tokens: int
    """Tokens received."""
    cost: str
    """Cost of the tokens, by these prices."""
    created_at: str
    """When it was sent."""


class ModelUsage(TypedDict):
    """Usage of language models, newest day first."""

    results: list[ModelUsageRow]
    is_complete: bool
    """Whether these are all rows. False: there are more than 1,000; ask for a shorter time."""


class ModelUsageRow(TypedDict):
    """The calls of one day, agent, purpose and model."""

    day: str
    """The day (UTC)."""
    agent: str | None
    """The agent's name. null: no agent."""
    agent_id: str | None
    purpose: str
    """Purpose of the calls, such as extraction."""
    language_model: str
    """The tenant's model. Empty: the deployment's."""
    model: str
    """Name of the model for its server."""
    calls: int
    """All calls."""
    failed: int
    """Calls that failed."""
    unknown: int
    """Calls without an outcome: their process ended."""
    prompt_tokens: int
    """Tokens sent."""
    completion_tokens: int
    """Tokens received."""
    cost: str
    """By the prices at the time of the calls."""


class NearFact(TypedDict):
    """A fact with nearly the same meaning."""

    memory_id: str
    content: str
    score: float
    """Cosine similarity."""


class NewApiKey(TypedDict):
    """An API key with its secret."""

    id: str
    url: str
    name: str
    """Name of the program that uses it."""
    prefix: str
    """Part of the key by which it is found."""
    scopes: list[Literal["read", "write", "erase", "keys"]]
    """Its scopes."""
    agent: str | None
    """The only agent that it can use."""
    agent_id: str | None
    """The only agent that this key can use. Empty: all agents."""
    user_id: str | None
    """The only end user that this key can write for and read. Empty: all users."""
    parent_id: str | None
    """The key that made it, with which it is revoked. Empty: none."""
    created_at: str
    """Time of creation."""
    last_used_at: str | None
    """When it was last used, to within a few minutes."""
    expires_at: str | None
    """The key is refused from this time on. Empty: it does not expire."""
    revoked_at: str | None
    """When it was revoked."""
    key: str
    """The key, for `Authorization: Bearer`. Shown once."""


class NewWebhook(TypedDict):
    """A webhook with its secret."""

    id: str
    url: str
    """Address of the program. It gets a POST for each event."""
    types: list[
        Literal[
            "message.answered",
            "message.failed",
            "message.closed",
            "escalation.opened",
            "escalation.waiting",
            "escalation.answered",
            "escalation.resolved",
            "tool_call.waiting",
            "fact.proposed",
            "fact.active",
            "fact.superseded",
            "fact.retracted",
            "erasure.requested",
            "erasure.done",
            "import.done",
            "quota.reached",
            "job.failed",
        ]
    ]
    """Types of events that are sent. Empty: all."""
    includes_content: NotRequired[bool]
    """Whether texts are sent too: of messages and facts to programs, and the user's last
    message to people. Otherwise only ids or a link are."""
    is_active: NotRequired[bool]
    """Whether events are sent."""
    description: NotRequired[str]
    """What the program does."""
    previous_until: str | None
    """Until then events are signed by the previous secret too."""
    created_at: str
    """Time of creation. Earlier events are not sent."""
    secret: str
    """Verifies the signatures. It is shown once."""


class OpenEscalation(TypedDict):
    """An open escalation: a person answers in the conversation."""

    id: str
    reason: str
    """The reason."""
    opened_at: str
    """When it was opened."""
    url: str
    """The escalation, to be answered and resolved."""


class Profile(TypedDict):
    """What is set of a user."""

    user_id: str
    """Id of the user."""
    name: str
    """The user's name."""
    time_zone: str
    """The time zone that was chosen for the user, such as Asia/Tokyo."""
    language: str
    """The user's language, such as de or pt-BR, in which Latin words of messages and questions
    are searched, unless the agent has a language."""
    metadata: dict[str, Any]
    """As it was sent, or empty."""
    channel_time_zone: str
    """The time zone that the channel reports, if none was chosen."""


class QuestionAnswer(TypedDict):
    """The answer of a version of an agent to a saved question."""

    id: str
    question_id: str
    version: int
    """Number of the agent's version. 0: before its first version."""
    user_id: NotRequired[str | None]
    """The person who asks. Empty: none."""
    content: NotRequired[str]
    """The answer; may be empty."""
    steps: NotRequired[list[str]]
    """The decision and its reason."""
    problem: NotRequired[str]
    """Why there is no answer."""
    source_count: NotRequired[int]
    """Recalled messages and facts in the prompt."""
    message_ids: NotRequired[list[str]]
    """The messages in the prompt: recalled ones and recent turns."""
    created_at: str
    """When it was answered."""


class QuestionRun(TypedDict):
    """The state of an agent's saved questions."""

    state: Literal["answered", "queued", "failed"]
    """queued: a worker asks them; failed: no further attempt is made; answered: the current
    version has answered the questions."""
    version: int
    """Number of the agent's current version. 0: before its first version."""
    attempts: int
    """Attempts since the last success."""
    last_error: str
    """Why the last attempt failed."""


class Quota(TypedDict):
    """A quota of this tenant, and its usage."""

    quota: Literal[
        "messages", "memories", "storage_bytes", "tokens", "cost", "api_keys", "requests_per_second"
    ]
    used: float | None
    """null: not measured, or not yet."""
    soft_limit: float | None
    """Warns the team. null: never."""
    hard_limit: float | None
    """More is refused. null: none."""
    resets_at: str | None
    """When the usage is reset. null: never, or each second."""


class RecallEvent(TypedDict):
    """A summary of the recall for one reply."""

    id: str
    url: str
    """The URL with all fields."""
    agent: str
    """The agent's name."""
    agent_id: str
    user_id: str
    message_id: str | None
    """The message that was answered."""
    reply_id: str | None
    """The reply with these memories."""
    query: str
    """The query."""
    abstained: bool
    """No memory was relevant enough."""
    embedding_model: str
    milliseconds: float
    """Duration of the recall."""
    created_at: str
    """When it was recorded."""
    hit_count: int
    """Number of memories found."""
    cut_count: int
    """Number of the best memories left out."""
    injected_count: int
    """Number of memories in the prompt."""


class RecallEventInFull(TypedDict):
    """The recall for one reply, with the reasons."""

    id: str
    url: str
    """The URL with all fields."""
    agent: str
    """The agent's name."""
    agent_id: str
    user_id: str
    message_id: str | None
    """The message that was answered."""
    reply_id: str | None
    """The reply with these memories."""
    query: str
    """The query."""
    abstained: bool
    """No memory was relevant enough."""
    embedding_model: str
    milliseconds: float
    """Duration of the recall."""
    created_at: str
    """When it was recorded."""
    hits: list[dict[str, Any]]
    """The memories found, best first, with the score of every channel, and the calibrated
    `probability`."""
    cut: list[dict[str, Any]]
    """The best of the memories left out, with the reason; otherwise as in `hits`."""
    facts: list[dict[str, Any]]
    """The facts considered, each with its reason."""
    injected: list[str]
    """The memories in the prompt, verbatim."""
    reranker: dict[str, Any] | None
    """The order of the agent's reranker as `ranked`, with scores, or the `problem`; null:
    there is none."""
    prompt: dict[str, Any] | None
    """The prompt as it was sent, with the tokens of each section; null if not kept."""
    model_calls: list[ModelCall]
    """The calls of language models for the reply, oldest first."""
    unknown_languages: list[str]
    """Codes of languages of the query that the embedding model does not know: memories are
    found by their words."""


class RecallWeights(TypedDict):
    """Weights of the ranking that differ from the measured ones."""

    lexical: NotRequired[float]
    session: NotRequired[float]
    previous: NotRequired[float]
    following: NotRequired[float]
    length: NotRequired[float]
    subject: NotRequired[float]
    time: NotRequired[float]
    fact: NotRequired[float]


class Reply(TypedDict):
    """A reply."""

    id: str
    content: str
    created_at: str
    finish_reason: str
    """Why the language model ended the reply: stop, length (cut at the limit of tokens) or
    content_filter. Empty: no language model wrote it."""


class Reranker(TypedDict):
    """The reranker that has sorted the memories."""

    model: str
    """Its name."""
    problem: str
    """Why it gave no scores, so that the order of recall stays; or empty."""


class SavedQuestion(TypedDict):
    """A saved question."""

    id: str
    url: str
    """Where it is."""
    agent_id: str
    """The agent that is asked."""
    content: str
    """The message."""
    user_id: NotRequired[str | None]
    """The person who asks. Empty: none."""
    created_at: str
    """When it was saved."""


class SearchAnswer(TypedDict):
    """The results of a search, best first in each kind."""

    messages: list[SearchedMessage]
    facts: list[FoundFact]
    people: list[SearchedPerson]
    is_partial: bool
    """A part of the search took longer than 2 s, and was left out."""


class SearchResult(TypedDict):
    """The results, best first, one per message; and facts, with separate scores."""

    results: list[Memory]
    abstained: bool
    """No message was relevant enough."""
    facts: NotRequired[list[FoundFact]]
    """The facts found, if `include` names facts."""


class SearchedMessage(TypedDict):
    """A message that matches."""

    message_id: str
    agent_id: str
    user_id: str
    thread_id: str
    channel: str
    role: str
    """user or assistant."""
    name: str
    """Display name, or empty."""
    content: str
    created_at: str
    score: float
    """The similarity, plus half of `words`."""
    similarity: float | None
    """Cosine; null before it is embedded."""
    words: float
    """Share of the query's words in the message, weighted by rarity: 0 to 1."""


class SearchedPerson(TypedDict):
    """A person who matches."""

    user_id: str
    name: str
    """The name of their last message, or empty."""


class Session(TypedDict):
    """A thread with a history."""

    thread_id: str
    url: str
    """The URL of its messages."""
    updated_at: str
    """When its newest state was saved."""
    checkpoints: int
    """Number of saved states."""


class SessionMessage(TypedDict):
    """One message of a graph's state."""

    role: str
    """user, assistant, system or tool."""
    content: str
    """Its text; empty for images and tool calls."""
    id: NotRequired[str]
    name: NotRequired[str]
    tool_call_id: NotRequired[str]


class SessionWithMessages(TypedDict):
    """A session and its newest messages, oldest first."""

    thread_id: str
    url: str
    """The URL of its messages."""
    updated_at: str
    """When its newest state was saved."""
    checkpoints: int
    """Number of saved states."""
    messages: list[SessionMessage]


class Source(TypedDict):
    """The source of an item of the context."""

    kind: Literal["fact", "message"]
    id: str
    """memory_id of the fact, or id of the message."""


class StoredFact(TypedDict):
    """A stored fact, and similar facts that existed before."""

    memory_id: str
    """The fact; its id never changes."""
    url: str
    """The fact's address."""
    agent: str | None
    """The agent that can use it; null: all."""
    agent_id: str | None
    """The agent that knows the fact. Empty: all agents."""
    user_id: str | None
    """The user that the fact is about. Empty: no user."""
    external_id: str | None
    """The id that the program chose which stored it. Empty: the text identifies it."""
    content: str
    """The fact, in words."""
    metadata: dict[str, Any]
    created_at: str
    """When it was first stored."""
    updated_at: str
    """When it was changed last."""
    valid_from: str
    """Start of validity."""
    valid_to: str | None
    """End of validity. Empty: still valid."""
    expires_at: str | None
    """Searches do not find it from this time on."""
    version_id: str
    """The version's id; for the current version the fact's id."""
    supersedes: str | None
    """The version that this one replaced."""
    subject: str
    """The name of the person or thing that the fact is about."""
    slot: str
    """The attribute of the subject, in snake_case, such as home_city. Empty: none."""
    value: str
    """The value of the slot, such as Oslo."""
    is_multi_valued: bool
    """Whether several values of the slot can be valid at once."""
    kind: Literal["observed", "inferred", "entered"]
    """Whether it was stated in a message, concluded, or entered."""
    asserter: str
    """Name of the person who stated it."""
    state: Literal["proposed", "active", "superseded", "retracted", "rejected"]
    """Only active facts are given to agents."""
    valid_from_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid from” is known."""
    valid_to_precision: Literal["day", "month", "year"] | Literal[""]
    """How exactly “valid until” is known."""
    learned_at: str | None
    """When the earliest message of its evidence was sent. Empty: when it was stored."""
    retracted_at: str | None
    """When it was retracted."""
    replaces: str | None
    """The fact that this one supersedes, or would supersede if it is confirmed."""
    review_reason: str
    """Why a person must review it, such as conflict or health."""
    run_id: str | None
    """The extraction run that proposed it."""
    created: bool
    """False: a fact with the same external id, or else the same text, existed. The other
    fields of the request were applied to it."""
    near_duplicates: list[NearFact]
    """Facts with nearly the same meaning. They are reported, never merged."""


class StoredFacts(TypedDict):
    """The stored facts of a batch, in the order of the request."""

    created: int
    """The number of facts that are new."""
    results: list[StoredFact]


class TimelineEntry(TypedDict):
    """One event of a timeline."""

    at: str
    """When it happened."""
    kind: Literal[
        "message",
        "recall",
        "fact",
        "escalation",
        "consent",
        "exclusion",
        "window",
        "account",
        "erasure",
        "access",
    ]
    """The kind of event."""
    action: str
    """Such as the role of a message, or `resolved`."""
    agent_id: str | None
    """The agent; null if it concerns no agent or all of them."""
    user_id: str
    """The id of the user that it concerns."""
    subject_id: str | None
    """Id of the message, fact, escalation … that it is about."""
    text: str
    """Its text, up to 300 characters."""
    by: str
    """Name of the author, or empty."""
    note: str
    """The reason, or the channel of a message, or empty."""


class TokenUsage(TypedDict):
    """Tokens of each section, by cl100k_base."""

    total: int
    system: int
    session: int
    memory: int
    task: int


class ToolCall(TypedDict):
    """A tool call that an agent requested while it answered a message."""

    id: str
    url: str
    state: Literal["waiting", "with_program", "approved", "denied", "expired", "done", "failed"]
    """State of the call."""
    agent: str
    """The agent's name."""
    agent_id: str
    """The agent that this memory belongs to."""
    user_id: str
    """The user's id in the channel, such as a Slack user id."""
    thread_id: str
    """The conversation of the message."""
    message_id: str
    """The message that the agent answers."""
    asked_by_id: NotRequired[str | None]
    """The agent that requested the call, if the thread was handed to another agent. The call
    is executed for that agent."""
    content: NotRequired[str]
    """The agent's text before the call; with the first call of an answer."""
    name: str
    """The tool."""
    arguments: Any
    """The arguments of the call."""
    question: NotRequired[str]
    """The question to the user."""
    created_at: str
    """When it was requested."""
    expires_at: str
    """Deadline for the consent or the program's result."""
    decided_at: NotRequired[str | None]
    """When it was decided."""
    decided_by: NotRequired[str]
    """The author and the channel of the decision."""
    done_at: NotRequired[str | None]
    """When it was done, or failed."""
    result: NotRequired[str]
    """The result that the language model received."""


class Turn(TypedDict):
    """A message, verbatim."""

    id: str
    role: Literal["user", "assistant"]
    """Role of the speaker."""
    name: NotRequired[str]
    """The speaker's display name."""
    content: str
    """The text, verbatim."""
    channel: str
    """The source: rest, slack, import, handover …"""
    thread_id: str
    """The conversation's id in the channel. Memory spans all conversations."""
    created_at: str
    """Time of the message; for imported turns, the original time."""
    indexed: bool
    """Whether recall can find it."""
    in_reply_to: str | None
    """The message that it answers."""
    external_id: NotRequired[str | None]
    """Id in the system that it was imported from."""
    metadata: dict[str, Any]
    """As it was sent, or empty."""


class Usage(TypedDict):
    """Counts of this tenant."""

    agents: int
    users: int
    """Pairs of an agent and a user with memories."""
    messages: int
    """Turns of the transcript."""
    embeddings: int
    """Vectors; a message has one per piece."""
    pending_embeddings: int
    """Messages not yet searchable."""
    failed_embeddings: int
    """Of these, those that are retried."""
    pending_replies: int
    """Messages not yet answered."""
    failed_replies: int
    """Messages whose reply has failed."""
    quotas: NotRequired[list[Quota]]
    """Not for bound keys."""
    not_exact: NotRequired[list[str]]
    """The counts above 100,000, if there are any: they are estimates, or for a bound key the
    least that there are."""


class UsageByDay(TypedDict):
    """The activity of some days."""

    days: list[UsageOfDay]
    """Oldest first."""
    is_complete: bool
    """false: days are still being counted."""


class UsageOfDay(TypedDict):
    """The activity of one day."""

    day: str
    """The day (UTC)."""
    messages: int
    """Messages of users."""
    replies: int
    """Replies of agents with a recall event."""
    from_facts: int
    """Replies with facts in their prompt."""
    from_memories: int
    """Replies with memories and no facts."""
    from_turns: int
    """Replies with recent turns alone."""
    from_nothing: int
    """Replies without any of them."""
    escalations: int
    """Escalations to people that were opened."""
    p50_seconds: float | None
    """Median of the reply times, within a fifth."""
    p95_seconds: float | None
    """95th percentile of the reply times, within a fifth."""
    prompt_tokens: int
    """Tokens sent for replies, as reported."""
    completion_tokens: int
    """Tokens received for replies."""
    extraction_tokens: int
    """Tokens of the extraction of facts."""
    cost: str
    """Cost of calls of language models, by the prices at that time."""


class User(TypedDict):
    """An end user."""

    user_id: str
    """The user's id."""
    name: str
    """The name that a program set, or that of their newest message with one; or empty."""
    names: list[str]
    """Names in their messages, newest first, at most 20."""
    messages: int
    """Turns of their conversations with all agents."""
    facts: int
    """Valid facts about them."""
    first_at: str | None
    """The time of the first message; null if there are only facts."""
    last_at: str | None
    """The time of the last message."""
    agents: list[AgentOfUser]


class WaitingCall(TypedDict):
    """A tool call that the user has to decide on, or whose result a program has to send."""

    id: str
    name: str
    """The tool."""
    arguments: Any
    """The arguments of the call: an object, or the text that the model gave instead."""
    content: str
    """The agent's text before it, with the first call."""
    question: str
    """The question to the user; empty for a program."""
    expires_at: str
    """Deadline; after it the call is not executed."""
    url: str
    """The call."""
    decision_url: str | None
    """Where to send the user's answer: POST `{'approve': true}` or false. Null: your program
    sends the result to `results_url`."""


class WaitsFor(TypedDict):
    """The condition that a held message waits for."""

    who: Literal["user", "person", "program"]
    """user: the user must decide on each of `tool_calls`. person: a member of the tenant must
    answer or resolve `escalation`. program: the program that sent the message must send the
    results of `tool_calls`."""
    detail: str
    """The same as a sentence, with the next step."""
    tool_calls: list[WaitingCall]
    results_url: str | None
    """Where a program sends the results of `tool_calls`, or null."""
    escalation: OpenEscalation | None


class Webhook(TypedDict):
    """An address of a program that gets events."""

    id: str
    url: str
    """Address of the program. It gets a POST for each event."""
    types: list[
        Literal[
            "message.answered",
            "message.failed",
            "message.closed",
            "escalation.opened",
            "escalation.waiting",
            "escalation.answered",
            "escalation.resolved",
            "tool_call.waiting",
            "fact.proposed",
            "fact.active",
            "fact.superseded",
            "fact.retracted",
            "erasure.requested",
            "erasure.done",
            "import.done",
            "quota.reached",
            "job.failed",
        ]
    ]
    """Types of events that are sent. Empty: all."""
    includes_content: NotRequired[bool]
    """Whether texts are sent too: of messages and facts to programs, and the user's last
    message to people. Otherwise only ids or a link are."""
    is_active: NotRequired[bool]
    """Whether events are sent."""
    description: NotRequired[str]
    """What the program does."""
    previous_until: str | None
    """Until then events are signed by the previous secret too."""
    created_at: str
    """Time of creation. Earlier events are not sent."""


class WebhookDelivery(TypedDict):
    """An event that is, or was, sent to a webhook."""

    id: str
    webhook_id: str
    """The webhook."""
    event_id: str
    """The event."""
    type: str
    """The type of the event."""
    state: str
    """waiting, delivered or failed."""
    status: NotRequired[int | None]
    """HTTP status of the last response."""
    attempts: int | None
    """Attempts so far, of a waiting one."""
    next_attempt_at: str | None
    """When it is sent next."""
    error: str | None
    """Why the last attempt failed."""
    created_at: str
    """When it was enqueued."""
    delivered_at: NotRequired[str | None]
    """When it was sent and accepted."""


class Window(TypedDict):
    """The recent turns of an agent and a user, oldest first."""

    agent: str
    """The agent's name."""
    agent_id: str
    user_id: str
    turns: list[WindowTurn]


class WindowTurn(TypedDict):
    """A turn in the window."""

    message_id: str | None
    """Null: not in the transcript."""
    role: Literal["user", "assistant"]
    name: str
    """The speaker's display name, or empty."""
    content: str
    at: str | None
    """The time of the turn, if known."""
