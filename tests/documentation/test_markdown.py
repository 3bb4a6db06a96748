"""The Markdown of each page: closed blocks, a blank line after a heading, complete table rows."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.documentation.pages import DECISIONS, PAGES, named, without_blocks

ALL = [*PAGES, *DECISIONS]
COLUMN = re.compile(r"(?<!\\)\|")


@pytest.mark.parametrize("page", ALL, ids=named)
def test_every_fenced_block_is_closed(page: Path) -> None:
    assert "```" not in without_blocks(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_blank_line_follows_every_heading(page: Path) -> None:
    assert re.findall(r"^#+ .*\n.+", without_blocks(page.read_text()), re.MULTILINE) == []


@pytest.mark.parametrize("page", ALL, ids=named)
def test_rows_of_a_table_have_the_same_columns(page: Path) -> None:
    lines = without_blocks(page.read_text()).splitlines()
    for line, following in pairwise([*lines, ""]):
        if line.startswith("|"):
            assert line.endswith("|"), f"a row is broken: {line}"
            assert not following or following.startswith("|"), f"text follows a row: {following}"
            if following:
                assert len(COLUMN.findall(line)) == len(COLUMN.findall(following)), following
