"""Text conversion: Slack's format becomes readable, and our text becomes harmless there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konstruct.channels.slack.events import attachment_note, mentions, plain_text
from konstruct.channels.slack.mrkdwn import split


def read(text: str) -> str:
    return plain_text(text, bot="UBOT", agent="ada", names={"U2": "Bob"})


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


def test_a_mention_is_of_one_user_only() -> None:
    assert mentions("hey <@UBOT|x>", "UBOT")
    assert not mentions("hey <@UBOT2>", "UBOT")
    assert not mentions("hey @UBOT", "UBOT")


def test_files_are_named() -> None:
    assert attachment_note([]) == ""
    assert attachment_note(["Plan", "a.pdf"]) == (
        "[Attached, and not to be read here: Plan, a.pdf]"
    )


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
        ("**bold** and *slanted* and ~~gone~~", "*bold* and _slanted_ and ~gone~"),
        ("__bold__ snake__case__x 2*3*4", "*bold* snake__case__x 2*3*4"),
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
