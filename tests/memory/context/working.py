"""Compile working contexts in tests, and count their tokens."""

from typing import Any

from memory.context import tokens
from memory.context.working import MESSAGE_OVERHEAD_TOKENS, REPLY_OVERHEAD_TOKENS, chat_messages


def turns(count: int, text: str = "turn {}") -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[number % 2], "content": text.format(number)}
        for number in range(count)
    ]


def prompt_tokens(compiled: Any) -> int:
    """Return the tokens of the whole prompt in a chat format."""
    texts = [message["content"] for message in chat_messages(compiled)]
    return (
        sum(tokens.count(text) + MESSAGE_OVERHEAD_TOKENS for text in texts) + REPLY_OVERHEAD_TOKENS
    )
