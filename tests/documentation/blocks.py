"""The code blocks of a page: their section, their content, and why one is not run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

# A comment before a block that gives the reason why it is not run.
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>(?:(?!-->).)+?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    text: str
    not_run: str

    @property
    def typed(self) -> str:
        """Return the commands of a console block, without the prompts."""
        return re.sub(r"^\$ ", "", self.text, flags=re.MULTILINE)


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        yield Block(
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            text=dedent(found["text"]),
            not_run=" ".join((found["reason"] or "").split()),
        )
