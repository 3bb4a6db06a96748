"""Every code block of README.md and docs/ works, as a reader would run it.

A page has a tenant `acme` with an agent `Ada`, except README.md and tutorials, which create their
own. A web process and a worker run. docs/contributing.md describes the kinds of blocks.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from tenants.admin.sites import tenant_site
from tenants.models import Tenant
from tests import database
from tests.documentation.blocks import Block, blocks
from tests.documentation.console import Console, console
from tests.documentation.pages import DECISIONS, DOCS, PAGES, ROOT, named

RUN = ("python", "console")
SHOWN = ("json", "text")
# Its commands need root, and run in a separate Debian: tests/deploy/test_debian.py.
SEPARATE_PAGES = {DOCS / "install-debian.md"}
WITH_BLOCKS = [
    page
    for page in PAGES
    if page not in SEPARATE_PAGES
    and any(block.language in RUN and not block.not_run for block in blocks(page))
]
# Pages about other products, which take seconds to import.
OTHER_PRODUCTS = {*(DOCS / "clients").glob("*.md")} - {DOCS / "clients" / "python.md"}
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
# Files that a console leaves in its folder.
CONSOLE_FILES = {"block", "block.output", "manage.arguments", "manage.output"}
# Names that a page may use from another one: in Python, and URL and KEY in the console.
PREAMBLE = {"python": DOCS / "reference.md", "console": DOCS / "api.md"}


def preamble(language: str) -> Block:
    return next(block for block in blocks(PREAMBLE[language]) if block.language == language)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like the checkout, in which pages may create files."""
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@contextlib.contextmanager
def acme(tenant: Tenant) -> Iterator[None]:
    """Rename a shared tenant to `acme`, with an agent `Ada`: creating one takes a second."""
    slug = tenant.slug
    with database.as_owner():
        Tenant.objects.filter(id=tenant.id).update(slug="acme")
    try:
        create_agent(tenant_id=tenant.id, name="Ada", system_prompt="You are Ada.")
        yield
    finally:
        with database.as_owner():
            Tenant.objects.filter(id=tenant.id).update(slug=slug)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page in OTHER_PRODUCTS else [])
        for page in WITH_BLOCKS
    ],
    ids=named,
)
def test_every_block_of_the_page_runs(
    page: Path,
    served_url: str,
    folder: Path,
    transactional_db: None,
    tenant_a: Tenant,
    environment_of_processes: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    for registered in ("pages", "_page_urls"):  # registrations of a page are removed afterwards
        monkeypatch.setattr(tenant_site, registered, copy(getattr(tenant_site, registered)))
    names: dict[str, Any] = {}
    found = [block for block in blocks(page) if not block.not_run]
    with contextlib.ExitStack() as opened:
        environment = environment_of_processes | {"PYTHONPATH": "clients/python/src"}
        typed = opened.enter_context(console(folder, environment, served_url))
        if page not in (*TUTORIALS, ROOT / "README.md"):
            opened.enter_context(acme(tenant_a))
            prepare(typed, names, {block.language for block in found})
        output = ""
        for block, following in pairwise([*found, None]):
            assert block is not None
            if block.language == "python":
                output = executed(block, page, names)
            elif block.language == "console":
                output = typed.type(block.typed)
            if following is not None and following.language in SHOWN and block.language in RUN:
                compare(following, output, exact=block.language == "python")
    left = {path.name for path in folder.iterdir()} - {path.name for path in ROOT.iterdir()}
    # Python code belongs to the reader's program, and writes an archive into its folder.
    assert names or left == CONSOLE_FILES


def test_tutorials_do_not_create_the_same_tenant() -> None:
    created = re.findall(
        r"(?:create|set_up)_tenant (\w+)", "".join(page.read_text() for page in TUTORIALS)
    )
    assert len(created) == len(set(created)) == 3


def prepare(typed: Console, names: dict[str, Any], languages: set[str]) -> None:
    """Run the code that a page may use from the others."""
    if "console" in languages:
        typed.type(preamble("console").typed)
    if "python" in languages:
        executed(preamble("python"), PREAMBLE["python"], names)


def executed(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Run a Python block. Return its output."""
    code = "\n" * block.line + block.text  # so that errors show the page's line
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(page), "exec"), names)  # noqa: S102  (our own page)
    return printed.getvalue()


def compare(shown: Block, output: str, *, exact: bool) -> None:
    """Compare the output with the output in the page."""
    if shown.language == "json":
        answered, expected = last_json(output), json.loads(shown.text)
        assert shape(answered) == shape(expected), output
        # Outputs of memory must be equal, not only of the same kind.
        assert answered.get("context") == expected.get("context")
        return
    pattern = ".*?".join(re.escape(part) for part in plain(shown.text, exact).split("…"))
    assert re.fullmatch(pattern, plain(output, exact), re.DOTALL), output


def plain(text: str, exact: bool) -> str:
    """Return a text in which all numbers and ids are equal."""
    if exact:
        return text.strip()
    text = re.sub(r"\b(?=[a-f\d-]*\d)[a-f\d]{4,}(-[a-f\d]+)*\b", "0", text.strip())
    return re.sub(r"\d+(?:[.,:]\d+)*", "0", text)


def last_json(output: str) -> Any:
    """Return the last JSON document in the output of a console."""
    return json.loads(output.strip().splitlines()[-1])


def shape(value: Any) -> Any:
    """Return the common structure of two answers of one kind: names and types."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=named)
def test_every_code_block_has_a_known_kind_or_a_reason_for_not_running(page: Path) -> None:
    before = ""
    for block in blocks(page):
        where = f"{named(page)}:{block.line}"
        if block.not_run:
            for path in re.findall(r"tests/[\w/]+\.py", block.not_run):
                assert (ROOT / path).exists(), f"{where} names {path}"
        elif block.language in SHOWN:
            assert before in RUN, f"{where} shows what nothing printed"
        else:
            assert block.language in (*RUN, ""), (
                f"{where} is {block.language}: say why it is not run"
            )
        if block.language == "" and page not in DECISIONS:
            assert not block.text.startswith("$ "), f"{where} is a console"
        before = "" if block.not_run else block.language
