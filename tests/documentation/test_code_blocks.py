"""Every code block of README.md and docs/ does what the page says, as its reader would run it.

A page has a tenant `acme` with an agent `Ada`, unless it is README.md or a tutorial, which make
their own; a web and a worker serve them. docs/contributing.md says what each kind of block is.
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
from tests.konstruct.api.live import serving

RUN = ("python", "console")
SHOWN = ("json", "text")
# Its commands are root's, and run in a Debian of their own: tests/deploy/test_debian.py.
ELSEWHERE = {DOCS / "install-debian.md"}
WITH_BLOCKS = [
    page
    for page in PAGES
    if page not in ELSEWHERE
    and any(block.language in RUN and not block.not_run for block in blocks(page))
]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
# What a console leaves in its folder.
CONSOLE_FILES = {"block", "block.output", "manage.arguments", "manage.output"}
# What a page may take from another: names in Python, URL and KEY in the console.
PREAMBLE = {"python": DOCS / "reference.md", "console": DOCS / "api.md"}


def preamble(language: str) -> Block:
    return next(block for block in blocks(PREAMBLE[language]) if block.language == language)


@pytest.fixture(scope="module")
def url(
    environment_of_processes: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    log = tmp_path_factory.mktemp("served") / "log"
    with serving(environment_of_processes, log, worker=True) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like the checkout, in which pages may leave files."""
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@contextlib.contextmanager
def acme(tenant: Tenant) -> Iterator[None]:
    """Call a standing tenant `acme`, with an agent `Ada`: making one takes a second."""
    slug = tenant.slug
    with database.as_owner():
        Tenant.objects.filter(id=tenant.id).update(slug="acme")
    try:
        create_agent(tenant_id=tenant.id, name="Ada", system_prompt="You are Ada.")
        yield
    finally:
        with database.as_owner():
            Tenant.objects.filter(id=tenant.id).update(slug=slug)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_every_block_of_the_page_runs(
    page: Path,
    url: str,
    folder: Path,
    transactional_db: None,
    tenant_a: Tenant,
    environment_of_processes: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    for registered in ("pages", "_page_urls"):  # what a page registers is not there for later tests
        monkeypatch.setattr(tenant_site, registered, copy(getattr(tenant_site, registered)))
    names: dict[str, Any] = {}
    found = [block for block in blocks(page) if not block.not_run]
    with contextlib.ExitStack() as opened:
        environment = environment_of_processes | {"PYTHONPATH": "clients/python/src"}
        typed = opened.enter_context(console(folder, environment, url))
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
    # Python code is of the reader's program, and writes an archive where that runs.
    assert names or left == CONSOLE_FILES


def test_tutorials_do_not_create_the_same_tenant() -> None:
    created = re.findall(r"create_tenant (\w+)", "".join(page.read_text() for page in TUTORIALS))
    assert len(created) == len(set(created)) == 3


def prepare(typed: Console, names: dict[str, Any], languages: set[str]) -> None:
    """Run what a page may take from the others."""
    if "console" in languages:
        typed.type(preamble("console").typed)
    if "python" in languages:
        executed(preamble("python"), PREAMBLE["python"], names)


def executed(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Run a Python block; return what it prints."""
    code = "\n" * block.line + block.text  # so that errors name the page's line
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(page), "exec"), names)  # noqa: S102  (our own page)
    return printed.getvalue()


def compare(shown: Block, output: str, *, exact: bool) -> None:
    """Compare what came with what the page shows."""
    if shown.language == "json":
        answered, expected = last_json(output), json.loads(shown.text)
        assert shape(answered) == shape(expected), output
        # What memory has to say is not only of the same kind.
        assert answered.get("context") == expected.get("context")
        return
    pattern = ".*?".join(re.escape(part) for part in plain(shown.text, exact).split("…"))
    assert re.fullmatch(pattern, plain(output, exact), re.DOTALL), output


def plain(text: str, exact: bool) -> str:
    """Return a text in which any number, and any id, is like any other."""
    if exact:
        return text.strip()
    text = re.sub(r"\b(?=[a-f\d-]*\d)[a-f\d]{4,}(-[a-f\d]+)*\b", "0", text.strip())
    return re.sub(r"\d+(?:[.,:]\d+)*", "0", text)


def last_json(output: str) -> Any:
    """Return the last JSON document of what a console printed."""
    return json.loads(output.strip().splitlines()[-1])


def shape(value: Any) -> Any:
    """Return what is alike in two answers of one kind: names and types."""
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
