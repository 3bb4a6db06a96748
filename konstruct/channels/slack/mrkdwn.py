"""Conversion of Markdown to Slack's mrkdwn, escaped, in parts of limited length. Pure."""

import re
import string
from collections.abc import Iterator
from typing import Final

# Slack recommends 4,000 characters at most, and cuts chat.update off there.
MAX_CHARACTERS: Final = 3900
FENCE: Final = "```"

# Slack converts marks only between spaces and ASCII punctuation. A zero-width space separates them
# from other characters, such as letters and punctuation of languages without spaces.
ZERO_WIDTH_SPACE: Final = "\u200b"
_SEPARATES: Final = frozenset(string.punctuation) - {"_"}
# In the order of precedence. Other text is escaped. `2*3*4` is no emphasis.
_INLINE = re.compile(
    r"""
    (?P<code>`[^`\n]+`)
    | \[(?P<label>[^\[\]\n]+)\]\((?P<url>https?://[^\s()<>|]+(?:\([^\s()<>|]*\)[^\s()<>|]*)*)\)
    | \*\*(?P<strong>[^\s*](?:[^*\n]*[^\s*])?)\*\*
    | (?<!\w)__(?P<strong2>[^\s_](?:[^_\n]*[^\s_])?)__(?!\w)
    | (?<![\d_*])\*(?P<emphasis>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\d_*])
    | ~~(?P<struck>[^\s~](?:[^~\n]*[^\s~])?)~~
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"#{1,6}[ \t]++")
_ITEM = re.compile(r"(?P<indent>[ \t]*+)[-*+][ \t]++(?P<text>.*+)\Z")
# A word with the space before it, and the last one with the space after it.
_WORD = re.compile(r"\s*+(?:\S++(?:\s++\Z)?|\Z)")


def escape(text: str) -> str:
    """Escape the three special characters of Slack.

    A quoted `<!channel>` or `<@U1>` then notifies no user.
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def split(text: str, limit: int = MAX_CHARACTERS) -> list[str]:
    """Return Markdown as mrkdwn, in at least one part of at most `limit` characters.

    Parts end at lines if possible, else at words. A code block that is split is closed and opened
    again.
    """
    parts: list[str] = []
    lines: list[str] = []
    length, fenced = 0, False
    for line, is_fence in _converted_lines(text, limit - 2 * len(FENCE) - 2):
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


def _converted_lines(text: str, limit: int) -> Iterator[tuple[str, bool]]:
    """Yield lines of mrkdwn up to the limit, and whether each opens or closes a code block."""
    in_code = False
    for line in text.splitlines():
        if line.strip().startswith(FENCE):
            in_code = not in_code
            yield FENCE, True
        else:
            for piece in _pieces(line, limit, in_code):
                yield piece, False


def _pieces(line: str, limit: int, in_code: bool) -> Iterator[str]:
    """Yield a line in pieces up to the limit, split at words, or inside of longer words."""
    written = escape(line) if in_code else _convert_line(line)
    if len(written) <= limit:
        yield written
        return
    piece = ""
    # Escaped word by word, so that no entity is split. Markdown in a long line is not converted.
    for word in _WORD.findall(line):
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


def _convert_line(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        text = line[heading.end() :].rstrip("#").rstrip(" \t")
        # Without bold marks of a part: it is bold as a whole.
        unmarked = escape(text.replace("**", "").replace("__", ""))
        return f"*{unmarked}*" if text else ""
    item = _ITEM.match(line)
    if item:
        return f"{item['indent']}• {_convert_inline(item['text'])}"
    return _convert_inline(line)


def _convert_inline(text: str) -> str:
    written, end = [], 0
    for found in _INLINE.finditer(text):
        written.append(escape(text[end : found.start()]))
        written.append(_convert_match(found))
        end = found.end()
    return "".join(written) + escape(text[end:])


def _convert_match(found: re.Match[str]) -> str:
    if found["url"]:
        return f"<{escape(found['url'])}|{escape(found['label']).replace('|', '¦')}>"
    if found["code"]:
        marked = found["code"]
    elif found["emphasis"]:
        marked = f"_{found['emphasis']}_"
    elif found["struck"]:
        marked = f"~{found['struck']}~"
    else:
        marked = f"*{found['strong'] or found['strong2']}*"
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return _separator(before) + escape(marked) + _separator(after)


def _separator(neighbor: str) -> str:
    is_separate = not neighbor.strip() or neighbor in _SEPARATES or neighbor == ZERO_WIDTH_SPACE
    return "" if is_separate else ZERO_WIDTH_SPACE
