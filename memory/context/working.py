"""The working context: the parts of a session and of memory that fit into one prompt, by section.

Pure: no Django, no I/O. The newest turns and the most relevant memories are kept.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict, cast

import structlog

from memory.arguments import count_argument
from memory.context import chat, tokens
from memory.exceptions import UnknownModelTier

logger = structlog.get_logger(__name__)

# Tokens that a chat format adds to a message's text: its role and its delimiters (OpenAI's
# cookbook, "Counting tokens for chat completions API calls": 3 a message, 1 for the role, 3 for the
# reply).
MESSAGE_OVERHEAD_TOKENS = 4
REPLY_OVERHEAD_TOKENS = 3
# The tokens of the two lines that introduce the memories, with a reserve.
HEADING_OVERHEAD_TOKENS = 50
# Turns are dropped rather than cut to fewer tokens than this.
MIN_TURN_TOKENS = 16
# The sections that give up tokens for other messages of the prompt.
SHRINKABLE_SECTIONS = ("session_history", "relevant_context")
# With fewer tokens left in a section, the next text is left out instead of cut.
MIN_CUT_TOKENS = 64


class TokenUsage(TypedDict):
    """Tokens of the texts of a compiled context, in total and by section."""

    total: int
    system: int
    session: int
    memory: int
    task: int


class CompiledContext(TypedDict):
    """The parts of a prompt. Keep the order of `messages` and of the lines of `context`."""

    system_prompt: str
    messages: list[dict[str, Any]]
    context: str
    task: str
    token_usage: TokenUsage


@dataclass(frozen=True, slots=True)
class WorkingContext:
    """The parts that fit into one prompt, and the numbers of those left out."""

    model_tier: str
    budget: int
    system_prompt: str
    messages: list[dict[str, Any]]
    """The newest turns, oldest first."""
    memories: list[str]
    """The most relevant ones, best first."""
    task: str
    """The description and its data."""
    task_cut: tuple[str, ...]
    """The parts of the task that were cut: "description", and names of its data."""
    token_usage: TokenUsage
    messages_left_out: int
    memories_left_out: int
    truncated: frozenset[str]
    """The sections with a text that was cut and marked."""

    @property
    def context(self) -> str:
        """The memories, one per line."""
        return "\n".join(self.memories)

    def without_numbers(self) -> CompiledContext:
        """Return the parts and their tokens alone."""
        names = CompiledContext.__annotations__
        return cast(CompiledContext, {name: getattr(self, name) for name in names})


class WorkingContextCompiler:
    """Fits a system prompt, a session, memories and a task into a model tier's token budget.

    Each section has at most its share, and the total at most the budget, with the tokens that a
    chat format adds to each message. Tokens that a section does not use are left to the reply.

    Args:
        model_tier: "fast" or "reasoning".
        reserved_tokens: tokens of the budget that other messages of the prompt need, such as the
            instructions of an application. The turns and the memories give them up, half each.
    """

    TOKEN_BUDGETS: ClassVar[dict[str, int]] = {"fast": 8000, "reasoning": 32000}
    BUDGET_ALLOCATION: ClassVar[dict[str, float]] = {
        "system_prompt": 0.15,
        "session_history": 0.35,
        "relevant_context": 0.35,
        "task_and_buffer": 0.15,
    }

    def __init__(self, model_tier: str = "reasoning", *, reserved_tokens: int = 0) -> None:
        if model_tier not in self.TOKEN_BUDGETS:
            known = ", ".join(sorted(self.TOKEN_BUDGETS))
            raise UnknownModelTier(f"model tier {model_tier!r} is unknown; use one of: {known}")
        self.model_tier = model_tier
        self.reserved_tokens = count_argument("reserved_tokens", reserved_tokens, minimum=0)

    @property
    def budget(self) -> int:
        """The maximum number of tokens of a prompt."""
        return self.TOKEN_BUDGETS[self.model_tier]

    def share(self, section: str) -> int:
        """Return the tokens of one section of the budget, rounded down."""
        # Rounded first: 0.35 has no exact binary form, and a product may be slightly too small.
        share = math.floor(round(self.budget * self.BUDGET_ALLOCATION[section], 6))
        if section in SHRINKABLE_SECTIONS:
            share -= math.ceil(self.reserved_tokens / len(SHRINKABLE_SECTIONS))
        return max(share, 0)

    def compile(
        self,
        system_prompt: str,
        session_messages: Iterable[Any],
        relevant_memories: Iterable[Any],
        task: tokens.TaskArgument,
    ) -> CompiledContext:
        """Fit the four sections into their shares.

        Texts that are too long (a system prompt, a task or a line of its data, a turn, a memory)
        are cut, with a mark. The task is never dropped.

        Args:
            system_prompt: the instructions of the agent.
            session_messages: turns, oldest first: {"role", "content", …} or LangChain messages. The
                oldest exchanges (a user's turn and its answers) are dropped first, as a whole, so
                that roles alternate.
            relevant_memories: strings, or objects with a `content`: most relevant first, or with a
                `score`; those without a score come last. The least relevant are dropped first.
            task: text, or a mapping with a `description` (which may be empty) and any other keys;
                each of these is a line of the task's section.

        Returns:
            The four sections and their tokens. `context` has the memories, one per line.

        Raises:
            InvalidArgument: the task cannot be written as text.
        """
        return self.fit(system_prompt, session_messages, relevant_memories, task).without_numbers()

    def fit(
        self,
        system_prompt: str,
        session_messages: Iterable[Any],
        relevant_memories: Iterable[Any],
        task: tokens.TaskArgument,
    ) -> WorkingContext:
        """Fit the sections as `compile` does, and return also the parts that were left out."""
        turns = [chat.as_turn(message) for message in session_messages]
        # The highest score first; those without a score last, in their order.
        found = [memory for memory in relevant_memories if chat.text_of(memory).strip()]
        found.sort(key=lambda one: (chat.score_of(one) is None, -(chat.score_of(one) or 0.0)))
        memories = list(map(chat.text_of, found))
        system_room = self.share("system_prompt") - MESSAGE_OVERHEAD_TOKENS
        memory_room = (
            self.share("relevant_context") - MESSAGE_OVERHEAD_TOKENS - HEADING_OVERHEAD_TOKENS
        )
        task_room = self.share("task_and_buffer") - MESSAGE_OVERHEAD_TOKENS - REPLY_OVERHEAD_TOKENS

        kept_system = tokens.cut(system_prompt, system_room)
        kept_turns = self.fitting_turns(turns)
        kept_memories = _best_memories(memories, memory_room)
        fitted_task = tokens.Task.of(task).fit(task_room)

        contents = {turn["content"] for turn in turns}
        truncated = {
            "system": kept_system != system_prompt,
            "session": any(turn["content"] not in contents for turn in kept_turns),
            "memory": kept_memories != memories[: len(kept_memories)],
            "task": bool(fitted_task.cut),
        }
        sizes = {
            "system": tokens.count(kept_system),
            "session": sum(tokens.count(chat.turn_text(turn)) for turn in kept_turns),
            "memory": tokens.count("\n".join(kept_memories)),
            "task": tokens.count(fitted_task.text),
        }
        fitted = WorkingContext(
            model_tier=self.model_tier,
            budget=self.budget,
            system_prompt=kept_system,
            messages=kept_turns,
            memories=kept_memories,
            task=fitted_task.text,
            task_cut=fitted_task.cut,
            token_usage=cast(TokenUsage, {"total": sum(sizes.values()), **sizes}),
            messages_left_out=len(turns) - len(kept_turns),
            memories_left_out=len(memories) - len(kept_memories),
            truncated=frozenset(name for name, cut in truncated.items() if cut),
        )
        logger.info(
            "working_context_compiled",
            model_tier=self.model_tier,
            budget=self.budget,
            **fitted.token_usage,
            messages=len(kept_turns),
            messages_left_out=fitted.messages_left_out,
            memories=len(kept_memories),
            memories_left_out=fitted.memories_left_out,
            task_cut=len(fitted.task_cut),
        )
        return fitted

    @staticmethod
    def count_tokens(text: str) -> int:
        """Return the number of tokens of a text, by cl100k_base."""
        return tokens.count(text)

    @staticmethod
    def truncate_to_budget(text: str, max_tokens: int) -> str:
        """Return the text in at most `max_tokens` tokens: whole, or its beginning, a mark and its
        end.
        """
        return tokens.cut(text, count_argument("max_tokens", max_tokens, minimum=0))

    # Programs know both names.
    _count_tokens = count_tokens
    _truncate_to_budget = truncate_to_budget

    def fitting_turns(self, session_messages: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the newest exchanges that fit into the session's share, as a whole.

        If an exchange is too long for the whole section, its long turns are cut.
        """
        kept: list[dict[str, Any]] = []
        left = room = self.share("session_history")
        for exchange in reversed(_exchanges([chat.as_turn(turn) for turn in session_messages])):
            sizes = [
                tokens.count_up_to(turn["content"], room) + _overhead_tokens(turn)
                for turn in exchange
            ]
            if sum(sizes) <= left:
                kept[:0] = exchange
                left -= sum(sizes)
                continue
            if not kept or (max(sizes) > room and left >= MIN_CUT_TOKENS):
                kept[:0] = _cut_exchange(exchange, left)
            break
        return kept


def chat_messages(compiled: CompiledContext) -> list[chat.ChatMessage]:
    """Return a compiled context as messages of a chat model, within the budget: see `chat`."""
    return chat.flatten(
        chat.chat_sections(
            compiled["system_prompt"], compiled["context"], compiled["messages"], compiled["task"]
        )
    )


def _best_memories(memories: Sequence[str], room: int) -> list[str]:
    """Return the longest run of the best memories that fits.

    A memory that is too long for the section is cut, and leaves half of the room to the next ones.
    """
    # With the line break.
    sizes = [tokens.count_up_to(memory, room) + 1 for memory in memories]
    kept: list[str] = []
    left = room + 1
    for position, (memory, size) in enumerate(zip(memories, sizes, strict=True)):
        if size > room + 1 and left >= MIN_CUT_TOKENS:
            piece = left - min(sum(sizes[position + 1 :]), left // 2)
            memory = tokens.cut(memory, piece - 1)
            size = tokens.count(memory) + 1
        if size > left:
            break
        kept.append(memory)
        left -= size
    # Joining two texts may create tokens at the boundary.
    while kept and tokens.count("\n".join(kept)) > room:
        kept.pop()
    if memories and not kept and (best := tokens.cut(memories[0], room)):
        kept.append(best)
    return kept


def _exchanges(turns: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Split the turns before each user's turn; turns before the first one are an exchange too."""
    exchanges: list[list[dict[str, Any]]] = []
    for turn in turns:
        if turn["role"] == "user" or not exchanges or exchanges[-1][0]["role"] != "user":
            exchanges.append([turn])
        else:
            exchanges[-1].append(turn)
    return exchanges


def _cut_exchange(exchange: Sequence[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return an exchange in `room` tokens: its longest turns are cut to one length, with a mark.

    If too little of them would be left, turns after the first one are dropped, oldest first.
    """
    head, rest = exchange[0], list(exchange[1:])
    fitting = max(room // (MESSAGE_OVERHEAD_TOKENS + MIN_TURN_TOKENS) - 1, 0)
    exchange = [head, *rest[max(len(rest) - fitting, 0) :]]
    frames = [_overhead_tokens(turn) for turn in exchange]
    left = room - sum(frames)
    if left < 1:
        return []
    sizes = [tokens.count_up_to(turn["content"], left) for turn in exchange]
    level = tokens.even_limit(sizes, left)
    cut = [{**turn, "content": tokens.cut(turn["content"], level)} for turn in exchange]
    return [turn for turn, size in zip(cut, sizes, strict=True) if turn["content"] or not size]


def _overhead_tokens(turn: Mapping[str, Any]) -> int:
    """Return the tokens that a chat format and the turn's date add to its content."""
    name = turn.get("name")
    named = tokens.count(name) + 1 if isinstance(name, str) and name else 0
    return MESSAGE_OVERHEAD_TOKENS + named + tokens.count(chat.turn_text({**turn, "content": ""}))
