"""Attacks on all code that parses untrusted text: run as a module in a child process."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import django

from tests.attacks.growing import Attack, attack_all

Reading = Callable[[str], object]
KINDS = (
    " ", "\t", "\n", "a", "A", "1", ".", ",", "-", "_", "*", "~", "#", "`", "[", "]", "(", ")", "<",
    "@", "|", ":", "/", "?", '"', "é", "\u0301", "好", "か", "。", "\x1f",
)  # fmt: skip


def readings() -> dict[str, Reading]:
    """Return the parsers by name."""
    from django.http import QueryDict
    from django.template import Context, Template
    from django.utils.http import parse_etags

    from konstruct.admin.pages import mark_difference
    from konstruct.api.auth.keys import bearer_key, parse_key
    from konstruct.api.http.bodies import (
        NOT_BLANK,
        AwareDateTimeField,
        ChannelIdField,
        FiltersTextField,
        StrictCharField,
    )
    from konstruct.channels.slack import adapter, events
    from konstruct.interfaces.mem0 import memories as mem0_filters
    from konstruct.interfaces.mem0.serializers import DeleteSerializer
    from konstruct.llm import completions, responder
    from konstruct.orchestrator.extraction import checks, fact_requests
    from konstruct.orchestrator.handoff import escalations
    from konstruct.orchestrator.history_import.lines import _moment
    from konstruct.strict_json import read_json
    from memory.context import chat, tokens
    from memory.context.tokens import Task
    from memory.models.attributes import metadata_values, parse_filters
    from memory.recall import scoring
    from memory.text import lexical, sentences

    remember = [{"function": {"name": responder.REMEMBER}}]
    page = Template("{% load texts %}{{ text|shorten:400 }}")

    def recalled(text: str) -> list[dict[str, str]]:
        context = f"{responder.CONTEXT_OPENING}\n- {text}"
        return [
            {"role": "system", "content": context},
            {"role": "user", "content": text},
            {"role": "user", "content": text},
        ]

    return {
        "sentences.count_words": sentences.count_words,
        "sentences.split_sentences": sentences.split_sentences,
        "sentences.cut_pieces": lambda text: sentences.cut_pieces(
            text, "Maria", count_tokens=lambda part: len(part) // 2, max_tokens=256
        ),
        "lexical.lexemes": lexical.lexemes,
        "lexical.has_time_word": lexical.has_time_word,
        "lexical.term_weights": lambda text: lexical.term_weights(lexical.lexemes(text)),
        "questions.Question.of": scoring.Question.of,
        "tokens.count": tokens._count,
        "tokens.cut": lambda text: tokens.cut(text, 100),
        "task.fit": lambda text: Task.of(
            {"description": text[:500], "a": text, **dict.fromkeys(text.split()[:300], text[:50])}
        ).fit(500),
        "lines.turn_line": lambda text: chat.turn_line(text, text, datetime.now(UTC)),
        "asking.asks_for_person": escalations.asks_for_person,
        "asking.find_phrase": lambda text: escalations.find_phrase(text, ["a person", "é1"]),
        "asking.find_phrase, of a long phrase": lambda text: escalations.find_phrase(
            text, [text[: len(text) // 2] + "b"]
        ),
        "asking.yes_or_no": escalations.yes_or_no,
        "responder.respond": lambda text: responder.respond(recalled(text)),
        "responder.requested_tool_call": lambda text: responder.requested_tool_call(
            recalled(text), remember
        ),
        "completions.read_completion": lambda text: completions.read_completion(
            {"content": text + "x", "tool_calls": [{"id": text, "name": text, "arguments": text}]},
            with_calls=False,
        ),
        "llm, the text of a stream": lambda text: [
            add({"choices": [{"delta": {"content": piece}}]})
            for add in [completions.StreamedAnswer(len, 10**9).add]
            for piece in text
        ],
        "llm, the excerpt of an error": completions.CompletionRequest(
            [{"role": "user", "content": "Hi"}], "", "fast"
        ).excerpt,
        "adapter.split": adapter.split,
        "slack.plain_text": lambda text: events.plain_text(text, bot="U1", agent="Ada", names={}),
        "slack.mentions": lambda text: events.mentions(text, "U1"),
        "slack.mentioned_users": events.mentioned_users,
        "mark_difference": lambda text: mark_difference(text, text[1:] + "b " + text),
        "shorten": lambda text: page.render(Context({"text": text})),
        "strict_json": read_json,
        "etags": parse_etags,
        "keys": lambda text: parse_key(bearer_key(f"Bearer {text}") or ""),
        "history._moment": lambda text: _moment("created_at", text),
        "query": lambda text: QueryDict(text.encode("utf-8", "replace")),
        "StrictCharField": StrictCharField(max_length=9).run_validation,
        "NOT_BLANK": StrictCharField(max_length=9, validators=[NOT_BLANK]).run_validation,
        "ChannelIdField": ChannelIdField().run_validation,
        "AwareDateTimeField": AwareDateTimeField().run_validation,
        "FiltersTextField": FiltersTextField().run_validation,
        "metadata_values, as a value": lambda text: metadata_values({"key": text}),
        "metadata_values, as a key": lambda text: metadata_values({text: "value"}),
        "parse_filters": lambda text: parse_filters({text: text}),
        "mem0's filters": lambda text: mem0_filters.parse({"user_id": text}),
        "mem0's filters, of metadata": lambda text: mem0_filters.parse({"metadata": {text: text}}),
        "mem0's filters, as a name": lambda text: mem0_filters.parse({text: text}),
        "mem0's filters, as a time": lambda text: mem0_filters.parse({"created_at": text}),
        "mem0's filters, in an address": lambda text: DeleteSerializer(
            data={"filters": text}
        ).is_valid(),
        "facts of a language model": fact_requests.parse,
        "facts of a language model, as instructions": checks.is_instruction,
        "facts of a language model, by language": lambda text: checks.is_other_language(text, text),
        "facts of a language model, by topic": lambda text: checks.sensitive_topic("", text),
        "facts of a language model, by period": checks.is_limited_in_time,
    }


def attacks() -> Iterator[tuple[str, Attack]]:
    """Yield every parser on every text."""
    pumps = [
        *KINDS, "a ", "a. ", "a b b ", "\u0301\u0316", "\uff9e\u0301", "<@U1> ", "<@U1|", "&lt;",
        '{"a":', '{"a":1},', '"a",', "a=1&", "- ", "```\n", "**a** ", "remember ", "😀",
    ]  # fmt: skip
    begins = ("", "# a", "remember")
    for (name, reading), begin, pump, end in itertools.product(
        readings().items(), begins, pumps, ("", ":")
    ):
        yield f"{name} {begin!r} {pump!r}… {end!r}", _reading(reading, begin, pump, end)


def _reading(reading: Reading, begin: str, pump: str, end: str) -> Attack:
    def attack(length: int) -> None:
        text = begin + pump * (length // len(pump)) + end
        with suppress(Exception):  # a quick refusal is correct
            reading(text)

    return attack


if __name__ == "__main__":
    django.setup()
    attacked = attack_all(attacks())
    assert attacked > 5_000, attacked
