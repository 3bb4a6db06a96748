"""Names in the documentation exist: pages, anchors, files, modules, decisions."""

import importlib
import re

from tenants.trace_export import ATTRIBUTES
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
AMENDED = re.compile(r"Amended (?:\w+ times|by)(.*?)(?=Amends |\n\n)", re.DOTALL)
AMENDS = re.compile(r"Amends (.*?)(?=Amended |:|\.\n|\n\n)", re.DOTALL)
NUMBER = re.compile(r"\]\((\d{4})-")


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


def test_decisions_are_numbered_without_gaps_and_a_title_has_its_number() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for page in DECISIONS:
        assert page.read_text().startswith(f"# {int(page.name[:4])}. "), page.name


def test_a_decision_that_amends_another_is_named_in_both() -> None:
    """The old decision and the new one both name the amendment."""
    amends, amended = set(), set()
    for page in DECISIONS:
        for status in re.findall(r"\*\*Status\.\*\*.*?\n\n", page.read_text(), re.DOTALL):
            number = page.name[:4]
            for text in AMENDS.findall(status):
                amends |= {(number, old) for old in NUMBER.findall(text)}
            for text in AMENDED.findall(status):
                amended |= {(new, number) for new in NUMBER.findall(text)}
    assert amends == amended
    assert amends
