"""Fixtures of browser tests: a real Chromium, a real server, a tenant with a month of data.

Without Chromium the tests are skipped, except with CI=true, where they must run.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import override_settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from konstruct.api.auth.keys import issue_key
from konstruct.llm.completions import LLMRefused
from konstruct.management.commands import demo
from konstruct.management.commands.demo import USER
from konstruct.orchestrator import replies
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.identities.channel_identities import identity_of
from konstruct.orchestrator.models import Agent, Escalation, ExtractionCursor
from konstruct.orchestrator.retention_rules import set_days
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.models import MemoryEntry, Message
from tenants.audit.models import RetentionRule
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.extracted import propose
from tests.konstruct.sending import send_message

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PASSWORD = "audit-what-it-remembers"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip these tests without a browser, except with CI=true."""
    browser_tests = [item for item in items if item.path.is_relative_to(HERE)]
    for item in browser_tests:
        item.add_marker(pytest.mark.browser)
    if CHROMIUM is None and not os.environ.get("CI"):
        items[:] = [item for item in items if item not in browser_tests]
        config.hook.pytest_deselected(items=browser_tests)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of this package."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright runs an event loop in this thread. The tests are no coroutines.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()
        connections.close_all()  # this thread has other event loops


@dataclass
class BrowserUser:
    """A browser page, with the errors of its console."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Open a page of the site."""
        answer = self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == 200, (path, answer.status)
        return self.page

    def log_in(self, username: str) -> None:
        """Log in with the form."""
        self.open("/admin/login/")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(f"{self.url}/admin/")


Visit = Callable[..., BrowserUser]


@pytest.fixture
def visit(chromium: Browser, live_server: Any) -> Iterator[Callable[..., BrowserUser]]:
    """Open a page at a host: ``visit("aurora.localhost")``. It records errors of the page."""
    contexts: list[BrowserContext] = []
    visitors: list[BrowserUser] = []

    def open_at(host: str, **options: Any) -> BrowserUser:
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        port = urlsplit(live_server.url).port
        visitor = BrowserUser(page, f"http://{host}:{port}")
        visitors.append(visitor)
        page.on(
            "console",
            lambda message: (
                visitor.errors.append(message.text) if message.type == "error" else None
            ),
        )
        page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                visitor.errors.append(f"it asked for {asked.url}")
                if urlsplit(asked.url).netloc != f"{host}:{port}" and asked.url.startswith("http")
                else None
            ),
        )
        return visitor

    yield open_at
    for context in contexts:
        context.close()
    assert [visitor.errors for visitor in visitors if visitor.errors] == []


@dataclass(frozen=True)
class Aurora:
    """The tenant of the demo with conversations of a month."""

    tenant: Tenant
    agent: Agent
    reply: Message
    fact: Any
    escalation: Escalation

    @property
    def host(self) -> str:
        """The address of its admin."""
        return f"{self.tenant.slug}.localhost"


@pytest.fixture(scope="package")
def demo_tenant(django_db_setup: None, django_db_blocker: Any) -> Iterator[Aurora]:
    """A tenant with a month of conversations and the operator olga, for all of these tests.

    Nothing is removed before the last of these tests. Tests that change data run last.
    """
    with pytest.MonkeyPatch.context() as patch:
        with django_db_blocker.unblock():
            aurora = _create_month()
            User.objects.create_superuser("olga", password=PASSWORD)
        patch.setattr(database, "remove_committed_rows", lambda: None)
        yield aurora
    with django_db_blocker.unblock():
        database.remove_committed_rows()


@pytest.fixture
def admin(demo_tenant: Aurora, visit: Visit) -> BrowserUser:
    """The tenant's admin, logged in."""
    visitor = visit(demo_tenant.host)
    visitor.log_in("admin")
    return visitor


def _create_month() -> Aurora:
    """Create the tenant with the demo's history, and send messages through the pipeline."""
    with database.as_owner():  # after each test all tenants except the shared ones are deleted
        provisioning.create_tenant(slug="aurora", name="Aurora Travel")
    tenant = Tenant.objects.get(slug="aurora")
    history, _ = demo.read_companies()
    agent = create_agent(
        tenant_id=tenant.id,
        name="Iris",
        system_prompt="You are Iris, the assistant of Aurora Travel.",
        extracts_facts=True,
    )
    create_agent(tenant_id=tenant.id, name="Otto")
    send = partial(send_message, tenant, agent, user_id=USER, thread_id="desk", name=USER.title())
    with tenant_scope(tenant.id):
        User.objects.create_superuser("admin", password=PASSWORD)
        issue_key(tenant_id=tenant.id, name="website")
        import_history(history["messages"], tenant_id=tenant.id)
        with demo.serving_model() as url, override_settings(LLM_POOL_URL=url):
            for cursor in ExtractionCursor.objects.all():
                runs.extract(cursor.pk)
        # It takes effect a day later, unless it is cancelled.
        set_days(RetentionRule(agent_id=agent.pk), 14)
        identity_of("slack", "T024BE7LD", "U024BE7LH", "Kim Novak")
        drain(tenant.id)
        question, *_ = [send(question["text"]) for question in history["questions"][:2]]
        drain(tenant.id)
        send("שלום, אני רוצה להזמין טיול <script>alert(1)</script>", user_id="noa", name="Noa")
        send("Can I talk to a human, please?", user_id="kim", name="Kim")
        failed = send("Could you also book the lighthouse tour?", answered=False)
        replies.REPLIES.record_failure(
            failed.id, LLMRefused("The language model answered 400: no such model.")
        )
        reply = Message.objects.get(in_reply_to=question)
        fact = _know(tenant, agent, "Sam is allergic to shellfish.")
        _know(tenant, agent, "Sam has an allergy to shellfish.")
        # Of another person: a corrected fact excludes its message from recall.
        _propose_facts(send("I am allergic to clams and shellfish.", user_id="zoe", name="Zoe"))
        escalation = Escalation.objects.get()
    LongTermMemory().update(fact, tenant.id, content="Sam is allergic to shellfish and to nuts.")
    return Aurora(tenant, agent, reply, fact, escalation)


def _propose_facts(message: Message) -> None:
    """Propose three facts in an extraction run: one is a conflict, one will be rejected."""
    home = {"subject": "Sam", "slot": "allergy_note", "is_multi_valued": False}
    propose(message, "shellfish", "Sam eats no shellfish.", value="shellfish", review="", **home)
    propose(message, "allergic", "Sam eats no mussels.", value="mussels", **home)
    # A change of a fact excludes the words of its evidence from recall: each has other words.
    for words, content in (("I am", "Sam reacts to seafood."), ("allergic", "Sam is ill.")):
        propose(message, words, content, slot="health")


def _know(tenant: Tenant, agent: Agent, content: str) -> Any:
    return LongTermMemory().store(
        MemoryEntry(
            tenant_id=tenant.id,
            agent_id=agent.id,
            user_id=USER,
            content=content,
            metadata={"topic": "health"},
        )
    )
