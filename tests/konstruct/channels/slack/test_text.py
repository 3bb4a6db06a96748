"""Text conversion: Slack's format becomes readable, and our text becomes harmless there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from konstruct.channels.slack import events
from konstruct.channels.slack.adapter import split
from tests.servers.slack import message_event

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def read(text: str) -> str:
    return events.plain_text(text, bot="UBOT", agent="ada", names={"U2": "Bob"})


@pytest.mark.parametrize(
    ("written", "readable"),
    [
        ("<@UBOT> hello", "hello"),
        ("<@UBOT|ada>: hello", "hello"),
        ("  <@UBOT>,  hello ", "hello"),
        ("hello <@UBOT>, and <@U2>, <@U3|Eve>, <@U4>", "hello @ada, and @Bob, @Eve, @U4"),
        ("<#C1|general> <#C2>", "#general #C2"),
        ("<!here> <!channel> <!subteam^S1|@crew> <!date^1^{date}|May>", "@here @channel @crew May"),
        ("<https://a.example/x|a.example/x>", "https://a.example/x"),
        ("<https://a.example/?a=1&amp;b=2|the page>", "the page (https://a.example/?a=1&b=2)"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("1 &lt; 2 &amp;&amp; &amp;lt; 3", "1 < 2 && &lt; 3"),
        ("<@UBOT>", ""),
    ],
)
def test_slack_markup_is_converted_to_text(written: str, readable: str) -> None:
    assert read(written) == readable


def received(text: str = "", **fields: Any) -> events.MessageEvent:
    envelope = events.parse_envelope(message_event("T1", text, **fields))
    assert envelope is not None
    message = events.read_message(envelope, bot="UBOT", now=NOW)
    assert message is not None
    return message


def elements(*texts: Any) -> dict[str, Any]:
    section = {"type": "rich_text_section", "elements": list(texts)}
    return {"type": "rich_text", "elements": [section]}


PLAIN = {"type": "text", "text": "a <b> & c "}
CLIP = {"transcription": {"preview": {"content": "Call me. I am", "has_more": True}}, "title": "A"}


@pytest.mark.parametrize(
    ("fields", "readable"),
    [
        (
            {"text": "Look", "attachments": [
                {"is_share": True, "author_name": "Ines\n<!here>",
                 "text": "I &lt;3 <@U2>\nBob: no"},
                {"is_msg_unfurl": True, "author_id": "U2", "files": [{"name": "a.pdf"}, CLIP]},
                {"is_share": True, "message_blocks": [{"message": {"blocks": [elements(PLAIN)]}}]},
                {"service_name": "News", "author_name": "News", "text": "A preview"},
                {"is_share": True, "author_name": "Lea"}, "odd",
            ]},
            "Look\nForwarded from Ines <!here>: I <3 @Bob\n  Bob: no\n"
            "Forwarded from @Bob: [Transcription of A]: Call me. I am […]\n"
            "  [Attached, and not to be read here: a.pdf]\n"
            "Forwarded from an unknown author: a <b> & c",
        ),
        (
            {"blocks": [
                elements(
                    PLAIN,
                    {"type": "link", "url": "https://a.example"}, {"type": "emoji", "name": "x"},
                    {"type": "user", "user_id": "U2"}, {"type": "broadcast", "range": "here"},
                    {"type": "channel", "channel_id": "C1"}, {"type": "date", "fallback": "May"},
                    {"type": "usergroup", "usergroup_id": "S1"},
                ),
                {"type": "rich_text", "elements": [
                    {"type": "rich_text_list", "elements": [elements(PLAIN), elements(PLAIN)]},
                ]},
                {"type": "section", "text": {"type": "mrkdwn", "text": "&lt;d&gt;"},
                 "fields": [{"type": "plain_text", "text": "<e>"}]},
                {"type": "image", "alt_text": "A cat"}, {"type": "divider"}, 3,
            ]},
            "a <b> & c https://a.example:x:@Bob@here#C1Maysubteam^S1\na <b> & c \na <b> & c \n"
            "<d>\n<e>\nA cat",
        ),
        ({"files": [CLIP]}, "[Transcription of A]: Call me. I am […]"),
        ({"files": [{**CLIP, "transcription": {"status": "processing"}}]}, ""),
    ],
)  # fmt: skip
def test_forwarded_messages_blocks_and_clips_become_text(
    fields: dict[str, Any], readable: str
) -> None:
    assert read(received(**fields).text) == readable


def test_only_the_words_of_the_sender_mention_the_agent() -> None:
    of_bot = elements({"type": "user", "user_id": "UBOT"})
    forwarded = [{"is_share": True, "author_name": "Ines", "text": "<@UBOT> hello"}]
    assert received(blocks=[of_bot]).kind is events.AddressedBy.MENTION
    assert received(attachments=forwarded).kind is events.AddressedBy.OVERHEARD
    assert read(received(attachments=forwarded).text) == "Forwarded from Ines: @ada hello"


def test_time_and_home_of_a_sender() -> None:
    def minutes_ago(ts: str) -> float:
        return (NOW - datetime.fromisoformat(received(ts=ts).at)) / timedelta(minutes=1)

    at = NOW.timestamp()
    times = [f"{at - 90}", f"{at - 7200}", f"{at + 60}", "17.1", "nan", "inf", "x", "1e400"]
    assert [minutes_ago(ts) for ts in times] == [1.5, 60, 0, 60, 0, 0, 0, 0]
    homes = [
        received(**fields).home
        for fields in ({}, {"team": "T7"}, {"user_team": "T7", "team": "T1"}, {"user_team": "E1"},
                       {"user_profile": {"team": "T7"}})
    ]  # fmt: skip
    assert homes == ["T1", "T7", "T7", "T1", "T7"]


def test_a_mention_is_of_one_user_only() -> None:
    assert events.mentions("hey <@UBOT|x>", "UBOT")
    assert not events.mentions("hey <@UBOT2>", "UBOT")
    assert not events.mentions("hey @UBOT", "UBOT")


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
        ("**bold** and *slanted* and ~~gone~~", "*bold* and _slanted_ and ~gone~"),
        ("__bold__ snake__case__x 2*3*4", "*bold* snake__case__x 2*3*4"),
        ("明日は**火曜日**です", "明日は\u200b*火曜日*\u200bです"),
        ("a**b**c un*believ*able", "a\u200b*b*\u200bc un\u200b_believ_\u200bable"),
        ("a~~b~~, `c`d 。`e` 「*f*」", "a\u200b~b~, `c`\u200bd 。\u200b`e` 「\u200b_f_\u200b」"),
        ("(**a**) **b**c**d** é\u200b**e**", "(*a*) *b*\u200bc\u200b*d* é\u200b*e*"),
        ("[a <b>](https://x.example/?a=1&b=2)", "<https://x.example/?a=1&amp;b=2|a &lt;b&gt;>"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](https://a.example/|y>)", "[x](https://a.example/|y&gt;)"),
        ("[w](https://en.example/A_(b))", "<https://en.example/A_(b)|w>"),
        ("`**x** <b>`", "`**x** &lt;b&gt;`"),
        ("# A **title** #", "*A title*"),
        ("## A title #1 ## ", "*A title #1 ##*"),
        ("#", "#"),
        ("# ", ""),
        ("# #", ""),
        ("- one\n  * two\n+ **three**", "• one\n  • two\n• *three*"),
        ("```python\n**x** = [a](https://b)\n```", "```\n**x** = [a](https://b)\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("", ""),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, mrkdwn: str) -> None:
    assert split(markdown) == [mrkdwn]


def test_parts_end_at_lines_then_at_words_then_anywhere() -> None:
    assert split("first line\nsecond line\nthird line x", 25) == [
        "first line\nsecond line",
        "third line x",
    ]
    assert split("a&b " * 10, 40)[0].endswith("a&amp;b")
    assert split("&" * 20, 40) == ["&amp;" * 6, "&amp;" * 6, "&amp;" * 6, "&amp;" * 2]


def test_split_code_block_is_closed_and_reopened() -> None:
    parts = split("```\n" + "\n".join(["x = 1"] * 12) + "\n```\nend", 40)
    assert len(parts) > 2
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert "".join(parts).count("x = 1") == 12
    assert parts[-1].endswith("end")


@given(
    st.text(st.sampled_from("ab &<>`*_~[]()\n#- \u00e9:/.") | st.characters(codec="utf-8")),
    st.integers(30, 120),
)
def test_any_text_is_split_and_escaped_without_loss(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert parts
    for part in parts:
        assert len(part) <= limit
        bare = part.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
        assert "&" not in bare
        assert "<!" not in bare
        assert "<@" not in bare
    expected, shown = (
        "".join(c for c in text if c.isalpha()) for text in (text.split("```")[0], "".join(parts))
    )
    for name in ("amp", "lt", "gt"):
        shown = shown.replace(name, "")
        expected = expected.replace(name, "")
    assert expected in shown or "(" in text or "`" in text
