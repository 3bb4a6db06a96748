"""Names in the documentation exist: pages, anchors, files, modules, decisions."""

import importlib
import re

from tenants.traces import ATTRIBUTES
from tests.documentation.pages import DECISIONS, PAGES, ROOT, anchors, without_blocks

ALL = [*PAGES, *DECISIONS]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PATH = re.compile(
    r"`((?:konstruct|memory|tenants|tests|benchmarks|deploy|docs|requirements)/[\w./-]*)"
)
# Not hosts (konstruct.example.com), units (konstruct.target), files (konstruct.cdx.json) or
# permissions (memory.view_message).
DOTTED = re.compile(
    r"`((?:konstruct|memory|tenants)(?!\.example|\.target|\.cdx)(?:\.(?!(?:add|change|delete|review|view)_)\w+)+)[`(]"
)


def test_every_link_leads_somewhere() -> None:
    for page in ALL:
        for target, anchor in LINK.findall(without_blocks(page.read_text())):
            other = (page.parent / target).resolve() if target else page
            assert other.exists(), (page, target)
            assert not anchor or anchor in anchors(other), (page, f"{target}#{anchor}")


def test_every_file_that_is_named_is_there() -> None:
    named = [(page, path) for page in ALL for path in PATH.findall(page.read_text())]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_every_module_that_is_named_is_there() -> None:
    of_spans = {*ATTRIBUTES.values(), "konstruct.process"}
    named = [(page, path) for page in ALL for path in DOTTED.findall(page.read_text())]
    for page, path in named:
        if path in of_spans:
            continue
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:length]))
            except ModuleNotFoundError:
                continue
            for part in parts[length:]:
                assert hasattr(found, part), (page, path)
                found = getattr(found, part)
            break
