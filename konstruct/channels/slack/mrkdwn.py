"""Conversion of Markdown to Slack's mrkdwn, escaped, in parts of limited length. Pure."""

import re
from collections.abc import Iterator
from typing import Final

# Slack recommends 4,000 characters at most, and cuts chat.update off there.
MAX_CHARACTERS: Final = 3900
FENCE: Final = "```"

# In the order in which they are looked for; what none of them matches is escaped.
_INLINE = re.compile(
    r"""
    (?P<code>`[^`\n]+`)
    | \[(?P<label>[^\[\]\n]+)\]\((?P<url>https?://[^\s()<>|]+(?:\([^\s()<>|]*\)[^\s()<>|]*)*)\)
    | \*\*(?P<strong>[^\s*](?:[^*\n]*[^\s*])?)\*\*
    | (?<!\w)__(?P<strong2>[^\s_](?:[^_\n]*[^\s_])?)__(?!\w)
    | (?<![\w*])\*(?P<emphasis>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])
    | ~~(?P<struck>[^\s~](?:[^~\n]*[^\s~])?)~~
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"#{1,6}[ \t]++")
_ITEM = re.compile(r"(?P<indent>[ \t]*+)[-*+][ \t]++(?P<text>.*+)\Z")
_SPACE_OR_WORD = re.compile(r"\s++|\S++")


def escape(text: str) -> str:
    """Replace the three characters that mean something to Slack.

    Whatever a reply quotes, `<!channel>` then calls nobody and `<@U1>` names nobody.
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def split(text: str, limit: int = MAX_CHARACTERS) -> list[str]:
    """Write Markdown as mrkdwn, in as few parts as fit; at least one.

    Parts end at lines if they can, then at words. A block of code that is cut is closed and opened
    again.
    """
    parts: list[str] = []
    lines: list[str] = []
    length, fenced = 0, False
    for line, is_fence in _written(text, limit - 2 * len(FENCE) - 2):
        closing = len(FENCE) + 1 if fenced else 0
        if lines and length + 1 + len(line) + closing > limit:
            parts.append("\n".join([*lines, FENCE] if fenced else lines))
            lines = [FENCE] if fenced else []
            length = len(FENCE) if fenced else -1
        lines.append(line)
        length += 1 + len(line)
        fenced ^= is_fence
    parts.append("\n".join([*lines, FENCE] if fenced else lines))
    shown = [part.strip("\n") for part in parts]
    return [part for part in shown if part.strip()] or [""]


def _written(text: str, limit: int) -> Iterator[tuple[str, bool]]:
    """Yield each line in mrkdwn, none longer than the limit, and whether it opens or ends code."""
    in_code = False
    for line in text.splitlines():
        if line.strip().startswith(FENCE):
            in_code = not in_code
            yield FENCE, True
        else:
            for piece in _pieces(line, limit, in_code):
                yield piece, False


def _pieces(line: str, limit: int, in_code: bool) -> Iterator[str]:
    """Write a line, cut at words where it is too long, and anywhere where a word is."""
    written = escape(line) if in_code else _mrkdwn(line)
    if len(written) <= limit:
        yield written
        return
    piece = ""
    # Escaped by the word: an entity is never cut. What a long line has of Markdown is left alone.
    for word in _words(line):
        written = escape(word)
        if len(piece) + len(written) <= limit:
            piece += written
            continue
        if piece:
            yield piece
        piece = "" if len(written) > limit else written.lstrip()
        for character in word.lstrip() if not piece else ():
            if len(piece) + len(escape(character)) > limit:
                yield piece
                piece = ""
            piece += escape(character)
    yield piece


def _words(line: str) -> Iterator[str]:
    """Yield the words of a line, each with the space before it; the last with that after it too."""
    space = ""
    word = ""
    for found in _SPACE_OR_WORD.findall(line):
        if found.isspace():
            space = found
            continue
        if word:
            yield word
        word, space = space + found, ""
    if word:
        yield word + space


def _mrkdwn(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        text = line[heading.end() :].rstrip("#").rstrip(" \t")
        return f"*{_without_stars(text)}*" if text else ""
    item = _ITEM.match(line)
    if item:
        return f"{item['indent']}• {_inline(item['text'])}"
    return _inline(line)


def _without_stars(text: str) -> str:
    """A heading is bold as a whole: what is bold in it is not said twice."""
    return escape(text.replace("**", "").replace("__", ""))


def _inline(text: str) -> str:
    written, end = [], 0
    for found in _INLINE.finditer(text):
        written.append(escape(text[end : found.start()]))
        written.append(_styled(found))
        end = found.end()
    return "".join(written) + escape(text[end:])


def _styled(found: re.Match[str]) -> str:
    if found["code"]:
        return escape(found["code"])
    if found["url"]:
        return f"<{escape(found['url'])}|{escape(found['label']).replace('|', '¦')}>"
    if found["emphasis"]:
        return f"_{escape(found['emphasis'])}_"
    if found["struck"]:
        return f"~{escape(found['struck'])}~"
    return f"*{escape(found['strong'] or found['strong2'])}*"
