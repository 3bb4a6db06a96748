"""Each page of both admins in a real browser: axe, the keyboard, a phone, and Hebrew text.

The pages come from the registries of the sites: a new page fails here until it is added. All texts
and names of users of the tenant are in Hebrew, long, and hostile.
"""

import re
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import available_timezones

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.db.models.functions import Now
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils.http import urlencode
from playwright.sync_api import TimeoutError as PlaywrightTimeout, expect

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import ApiKey
from konstruct.channels.models import Arrival, Delivery, SlackInstallation, SlackMember
from konstruct.channels.slack.installations import SCOPES, connect
from konstruct.channels.webhooks import create_webhook
from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator import models, replies
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.urls import public, tenant as tenant_urls
from memory.conversations.short_term import clear_window
from memory.conversations.transcript import add_items
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.models import Conversation, MemoryEntry, Message, RecallExclusion
from tenants.admin.sites import operator_site, tenant_site
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, ListExport, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType, Subscription
from tenants.schemas import provisioning
from tests import database
from tests.browser.conftest import PASSWORD, Aurora, BrowserUser, Visit
from tests.browser.disguise import WORD, disguise, texts_of
from tests.konstruct.api.seed_data import talk
from tests.konstruct.conftest import Program
from tests.konstruct.extracted import propose
from tests.konstruct.sending import send_message

pytestmark = pytest.mark.long

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</textarea>"
NAME = f"נועה <b>כהן</b> {'ארוך' * 12}"
NOA = f"נועה-<i>{'מזהה' * 12}"
THREAD = f"שיחה-{'פתיל' * 12}"
HEBREW_TEXT = f"שלום, אני אלרגית לבוטנים {HOSTILE} {'מילה' * 60}"
BY = Actor(ActorKind.PERSON, "1", NAME)
TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"
PHONE = {"width": 400, "height": 844}
DESK = {"width": 1440, "height": 900}
# Pages that only take a form, send a file, or redirect to another site.
NO_PAGES = {
    *("ask_again", "answer_escalation", "resolve_escalation"),
    *("assign_escalation", "escalate", "hand_over", "slack_finish", "usage"),
    *("clear_window", "clear_session", "include_message", "receipt_json", "export_person"),
    *("ask_questions", "delete_question", "list_export_download", "decide_fact", "confirm_import"),
    *("language_model_test", "restore_agent"),
}


@pytest.fixture(scope="package")
def hebrew(demo_tenant: Aurora, django_db_blocker: Any) -> Tenant:
    """A tenant with a row of each model, all of it by Noa, who writes Hebrew."""
    with django_db_blocker.unblock():
        with database.as_owner():
            provisioning.create_tenant(slug="hebrew", name="טיולי הזריחה")
        tenant = Tenant.objects.get(slug="hebrew")
        Group.objects.create(name="תמיכה")
        with tenant_scope(tenant.id):
            _fill(tenant)
    return tenant


def _fill(tenant: Tenant) -> None:
    send = partial(send_message, tenant, user_id=NOA, thread_id=THREAD, name=NAME)
    person = User.objects.create_superuser("admin", password=PASSWORD)
    agent = create_agent(tenant_id=tenant.id, name="איריס", system_prompt=f"את איריס. {HOSTILE}")
    create_agent(tenant_id=tenant.id, name="אסתר", system_prompt="את אסתר.")
    models.Agent.objects.update(tools=["remember_fact"], escalate_on=["complaint"])
    message = send(agent, HEBREW_TEXT)
    drain(tenant.id)
    send(agent, f"למה אני אלרגית? {HEBREW_TEXT}")
    drain(tenant.id)
    reply = Message.objects.filter(in_reply_to__isnull=False).latest("number")
    send(agent, f"Please remember that {HEBREW_TEXT}", thread_id="כלים")
    for text in ("Can I talk to a human, please?", HEBREW_TEXT):
        send(agent, text, thread_id="אדם")
    failed = send(agent, HEBREW_TEXT, answered=False)
    replies.REPLIES.record_failure(failed.id, LLMRefused(f"No such model: {HEBREW_TEXT}"))
    send(agent, HEBREW_TEXT, answered=False)
    facts = LongTermMemory()
    for text in (HEBREW_TEXT, f"{HEBREW_TEXT} ואגוזים"):
        entry = MemoryEntry(tenant_id=tenant.id, agent_id=agent.id, user_id=NOA, content=text,
                            metadata={"נושא": HEBREW_TEXT})  # fmt: skip
        fact = facts.store(entry)
    facts.update(fact, tenant.id, content=f"{HEBREW_TEXT} ושקדים")
    propose(
        message, "אלרגית", f"נועה {HEBREW_TEXT}", slot="allergy", subject=NAME, value=HEBREW_TEXT
    )
    propose(message, "בוטנים", "אחר", slot="other", review="")
    send(agent, HEBREW_TEXT, channel="slack")
    clear_window(tenant.id, agent.id, NOA)
    send(agent, HEBREW_TEXT)
    add_items(agent.id, NOA, THREAD, [({"של": HEBREW_TEXT}, None)])
    identity = channel_identities.identity_of("slack", "T1", NOA, NAME)
    channel_identities.link(identity, f"{NOA}2", by=NAME)
    by = {"author_kind": "person", "author_id": "1", "author_name": NAME}
    of = {"agent_id": agent.id, "user_id": NOA}
    RecallExclusion.objects.create(message=message, reason=HEBREW_TEXT, **by, **of)
    RetentionRule.objects.create(days=30)
    erasure_requests.request_erasure(f"{NOA}3", by=BY, reason=HEBREW_TEXT)
    erasure_requests.request_message_erasure(
        agent_id=agent.id, user_id=NOA, thread_id="x", by=BY, reason=HEBREW_TEXT
    )
    connect(
        tenant_id=tenant.id, agent_id=agent.id, workspace="T1", name=NAME, bot_user_id="U0",
        token="xoxb-of-no-one", scopes=SCOPES, by=NAME,
    )  # fmt: skip
    installation = SlackInstallation.objects.get()
    SlackMember.objects.create(installation=installation, slack_id="U2", member=person)
    Arrival.objects.create(
        id=uuid4(), channel="slack", workspace="T1", key="Ev1", event={"text": HEBREW_TEXT}
    )
    Delivery.objects.create(message=reply, channel="slack", address={"channel": "C1"})
    Subscription.objects.create(
        target="mail", addresses=["noa@example.com"], types=["escalation.opened", "erasure.done"]
    )
    models.ModelCall.objects.create(
        agent_id=agent.id, purpose="extraction", model="gpt-0", prompt_tokens=7
    )
    models.ExtractionCursor.objects.get_or_create(thread_id=THREAD, **of)
    talk(Program(tenant, agent, ""), THREAD, HEBREW_TEXT)
    issue_key(tenant_id=tenant.id, name=f"מפתח {HOSTILE[:40]}")
    Conversation.objects.create(thread_id=THREAD, title=HEBREW_TEXT, **of)
    models.LanguageModel.objects.create(name=NAME)
    create_webhook("https://hooks.example.com/in", description=HEBREW_TEXT[:100])
    record_event(EventType.ERASURE_DONE, UUID(int=1))


def model_pages(site: Any, urlconf: Any) -> Iterator[tuple[str, str]]:
    """Return the list of each model, its form for a new row, and the pages of one row."""
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    first = next(iter(site._registry))
    for model, site_admin in site._registry.items():

        def at(page: str, *key: Any, model: type[Model] = model) -> tuple[str, str]:
            name = f"{model._meta.app_label}_{model._meta.model_name}_{page}"
            return name, reverse(f"admin:{name}", urlconf=urlconf, args=key)

        yield at("changelist")
        if site_admin.has_add_permission(request):
            yield at("add")
        row = model._default_manager.first()
        assert row is not None, f"{model.__name__} needs a row"
        yield at("change", row.pk)
        # These two are alike for all models without a template of their own.
        if model is first or site_admin.object_history_template:
            yield at("history", row.pk)
        may_delete = site_admin.has_delete_permission(request, row)
        if may_delete and (site_admin.delete_confirmation_template or model is Group):
            yield at("delete", row.pk)


def own_pages() -> Iterator[tuple[str, str]]:
    """Return the pages of a tenant's admin that belong to no model."""
    agent = models.Agent.objects.filter(name="איריס").get()
    message = Message.objects.filter(role="user").earliest("number")
    # The owner worker of another test may have moved the messages to the linked id.
    user_id = message.user_id
    reply = Message.objects.filter(in_reply_to=message).get()
    fields = {"agent": agent.pk, "user": user_id}
    # Here, because the erasures of other tests delete exports.
    of_people, _ = ListExport.objects.get_or_create(
        list_name="people",
        defaults={"member_id": 1, "member": NAME, "query": f"q={NOA}", "time_zone": "UTC"},
    )
    left_out = [{"place": "1", "reason": HEBREW_TEXT}]
    models.HistoryImport.objects.get_or_create(
        file_name=NAME,
        defaults={
            "content": b"",
            "is_dry_run": True,
            "finished_at": Now(),
            "report": {"format": "csv", "counts": {"left_out": 1}, "left_out": left_out},
        },
    )
    names = ("index", "password_change", "slack_connect", "conversations", "fact_review", "windows")
    names += ("activity", "sessions", "people", "records", "import_history")
    pages: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        **dict.fromkeys(names, ((), {})),
        "escalation": ((models.Escalation.objects.earliest("opened_at").pk,), {}),
        "conversation": ((message.pk,), {"why": reply.pk}),
        "exclude_message": ((message.pk,), {}),
        "roll_back_extraction_run": ((models.ExtractionRun.objects.all()[0].pk,), {}),
        "thread": ((Message.objects.filter(channel="slack")[0].pk,), {}),
        "memories": ((), {**fields, "q": "אלרגית"}),
        "window": ((), fields),
        "try_agent": ((agent.pk,), {"user": user_id}),
        "agent_versions": ((agent.pk,), {}),
        "erase_message": ((message.pk,), {}),
        "person": ((), {"user": user_id}),
        "session": ((), {"thread": THREAD}),
        "erase_person": ((), {"user": user_id}),
        "search_page": ((), {"q": "אלרגית"}),
        "roll_key": ((ApiKey.objects.all()[0].pk,), {}),
        "invite_person": ((User.objects.get(username="admin").pk,), {}),
        "list_export": ((of_people.pk,), {}),
    }
    for name, (arguments, query) in pages.items():
        path = reverse(f"admin:{name}", urlconf=tenant_urls, args=arguments)
        yield name, f"{path}?{urlencode(query)}"


def operators_pages(tenant: Tenant) -> Iterator[tuple[str, str]]:
    """Return the pages of the operators' admin that belong to no model."""
    for name in ("index", "password_change", "processes"):
        yield name, reverse(f"admin:{name}", urlconf=public)
    for name in ("remove_tenant", "invite_admin"):
        yield name, reverse(f"admin:{name}", urlconf=public, args=[tenant.pk])


def not_walked(site: Any, own: list[tuple[str, str]]) -> set[str]:
    """Return names of pages without an address here, except exports of lists."""
    walked = NO_PAGES | {name for name, _ in own}
    return {name for name in site.pages if name not in walked and not name.endswith("_export")}


# In the page: return Hebrew text with the direction of the text around it.
DEPENDENT_TEXT = """() => {
  const isHebrew = (text) => /[\\u0590-\\u05ff]/.test(text);
  const isPlain = (element) => getComputedStyle(element).unicodeBidi === "plaintext";
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!isHebrew(walker.currentNode.data) || parent.closest("script, bdi, [dir=auto]")) continue;
    let each = parent;
    while (each && !isPlain(each)) each = each.parentElement;
    if (!each) found.add(parent.outerHTML.slice(0, 160));
  }
  for (const field of document.querySelectorAll("input, textarea")) {
    if (field.type !== "hidden" && isHebrew(field.value) && field.dir !== "auto" && !isPlain(field))
      found.add(field.outerHTML.slice(0, 160));
  }
  return [...found];
}"""
# In the page: from now on, record the focused elements, and whether the focus is visible.
NOTE_FOCUS = """() => {
  const main = document.getElementById("main") ?? document.body;
  main.focus();
  const controls = "a[href], button, input, select, textarea, summary, [tabindex]";
  const isReached = (each) =>
    each.tabIndex >= 0 && !each.disabled && each.checkVisibility({ visibilityProperty: true })
    && !(each.type === "radio" && !each.checked);
  window.expectedFocus = new Set([...main.querySelectorAll(controls)].filter(isReached));
  window.unseenFocus = [];
  const isSeen = (element) => {
    const { outlineStyle, boxShadow } = getComputedStyle(element);
    return outlineStyle !== "none" || boxShadow !== "none";
  };
  document.addEventListener("focusin", ({ target }) => {
    window.expectedFocus.delete(target);
    const near = [target, target.parentElement, target.parentElement?.parentElement];
    if (main.contains(target) && !near.some((each) => each && isSeen(each)))
      window.unseenFocus.push(target.outerHTML.slice(0, 160));
  });
  // A date has a stop for each part.
  const stops = (each) => (each.type === "date" || each.type === "datetime-local" ? 8 : 1);
  return [...window.expectedFocus].reduce((sum, each) => sum + stops(each), 0);
}"""
WIDEST = """() => [...document.querySelectorAll("#main *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth)
  .pop()?.outerHTML.slice(0, 120)"""
OPENERS = """() => [...document.querySelectorAll("[x-on\\\\:click]")]
  .filter((each) => / = !|= true$|showActions/.test(each.getAttribute("x-on:click")))
  .filter((each) => each.checkVisibility() && !each.hasAttribute("aria-expanded"))
  .map((each) => each.outerHTML.slice(0, 160))"""


class Walk:
    """The errors of the opened pages."""

    def __init__(self, visitor: BrowserUser) -> None:
        self.visitor = visitor
        self.found: list[tuple[str, str, str]] = []
        self.opened = 0

    def page(self, name: str, path: str, *, by_keyboard: bool) -> None:
        """Open a page and record its errors."""
        page = self.visitor.page
        page.set_viewport_size(DESK)
        self.visitor.open(path)
        expect(page.locator("[x-cloak]")).to_have_count(0)
        self._axe(name, {})
        for problem, script in (("direction", DEPENDENT_TEXT), ("no aria-expanded", OPENERS)):
            self._note(name, problem, page.evaluate(script))
        if by_keyboard:
            self._keyboard(name)
        page.set_viewport_size(PHONE)
        # Dark: the pages with a template of their own, and one in three of the others.
        if by_keyboard or self.opened % 3 == 0:
            self._switch("dark")
            self._axe(name, {"runOnly": ["color-contrast", "scrollable-region-focusable"]})
            self._switch("light")
        with suppress(PlaywrightTimeout):  # charts are drawn again after a change of the width
            page.wait_for_function(f"() => {TOO_WIDE} === 0", timeout=3000)
        width = page.evaluate(TOO_WIDE)
        if width:
            self._note(name, "too wide for a phone", [f"{width} px: {page.evaluate(WIDEST)}"])
        self.opened += 1

    def _axe(self, name: str, options: dict[str, Any]) -> None:
        options = {"resultTypes": ["violations"], **options}
        for rule in Axe().run(self.visitor.page, options=options).response["violations"]:
            if rule["impact"] != "minor":
                self._note(name, rule["id"], [node["html"] for node in rule["nodes"]])

    def _keyboard(self, name: str) -> None:
        """Go through the content by the keyboard: each control gets a visible focus."""
        page = self.visitor.page
        for _ in range(page.evaluate(NOTE_FOCUS) + 2):
            page.keyboard.press("Tab")
        for problem, script in (
            ("not reached", "[...window.expectedFocus].map((each) => each.outerHTML)"),
            ("focus is not seen", "window.unseenFocus"),
        ):
            self._note(name, problem, page.evaluate(script))

    def _switch(self, scheme: str) -> None:
        self.visitor.page.evaluate(
            "theme => Alpine.$data(document.documentElement).switchTheme(theme)", scheme
        )

    def _note(self, name: str, problem: str, details: list[str]) -> None:
        self.found += [(name, problem, detail[:160]) for detail in details]


def test_every_page_of_a_tenants_admin_can_be_used_by_all(
    hebrew: Tenant, visit: Visit, settings: Any
) -> None:
    settings.SLACK_CLIENT_ID = settings.SLACK_CLIENT_SECRET = "of no one"
    settings.SLACK_SIGNING_SECRET = "of no one"
    with tenant_scope(hebrew.id):
        own = list(own_pages())
    assert not_walked(tenant_site, own) == set()
    visitor = visit("hebrew.localhost")
    visitor.page.on("dialog", lambda dialog: visitor.errors.append(dialog.message))
    walk = Walk(visitor)
    walk.page("login", "/admin/login/", by_keyboard=True)
    visitor.log_in("admin")
    with tenant_scope(hebrew.id):
        of_models = list(model_pages(tenant_site, tenant_urls))
    for name, path in own:
        walk.page(name, path, by_keyboard=True)
    for number, (name, path) in enumerate(of_models):
        walk.page(name, path, by_keyboard=number % 8 == 0)
    assert walk.found == []


def test_every_page_of_the_operators_admin_can_be_used_by_all(hebrew: Tenant, visit: Visit) -> None:
    own = list(operators_pages(hebrew))
    assert not_walked(operator_site, own) == set()
    visitor = visit("localhost")
    walk = Walk(visitor)
    visitor.log_in("olga")
    for name, path in (*own, *model_pages(operator_site, public)):
        walk.page(name, path, by_keyboard=name.endswith(("_changelist", "_add")))
    assert walk.found == []


# Data of the rows, as opposed to texts of the product.
DATA = re.compile(
    r"[^\W\d_]*[\u0590-\u05ff][\w-]*|‹U.*|<(s|i>|b>).*|\b\w+:\w+"  # user texts; scopes
    r"|[Hh]ttps://hooks\.example\.com/in"
    r"|(This is what I remember:|I will remember that|I have asked for a person:|- Fact:|"
    r"You are an AI assistant|\(Built-in responder|Please remember that|No such model:|"
    r"May I remember this:|“?Can I talk to a human).*"  # replies, and their messages
    r"|\w+\*{4,}|\b[0-9A-Fa-f][0-9a-f]{7}[0-9a-f-]{4,}|\b\w*_\w+\b|\"(complaint|facts)\""  # ids
    r"|U\d|T1|Ev1|\b(Konstruct|Slack|Python|curl|CSV|JSON|Ctrl|esc|md5|UTC|Deutsch|English|español)\b"
    r"|\b(en|de|es)\b|\b([Aa]dmin|[Oo]lga|[Aa]uditor|curator|[Aa]urora( Travel)?|hebrew)\b"
    r"|\b(rest|slack|stop|default|allergy|health|other|extraction|localhost|[Tt]enant-[aAbB])\b"
    r"|\b(whatsapp|telegram|chatgpt|sharegpt|mem0|zep|csv|transcript|dmy|mdy|ymd)\b"
    r"|\b(gpt-0|test-model|all-MiniLM-L6-v2)\b|[Nn]oa@example\.com|\bdays: \d+"  # of the log
)


def test_every_text_is_translated(
    hebrew: Tenant, db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SLACK_CLIENT_ID = settings.SLACK_CLIENT_SECRET = "of no one"
    settings.SLACK_SIGNING_SECRET = "of no one"
    disguise(monkeypatch)
    with tenant_scope(hebrew.id):
        of_tenant = [*own_pages(), *model_pages(tenant_site, tenant_urls)]
    found = set()
    for host, name, pages in (
        ("hebrew.localhost", "admin", of_tenant),
        ("localhost", "olga", chain(operators_pages(hebrew), model_pages(operator_site, public))),
    ):
        client = Client(headers={"Host": host, "Accept-Language": "de"})
        with tenant_scope(hebrew.id) if pages is of_tenant else nullcontext():
            client.force_login(User.objects.get(username=name))
        for page, path in pages:
            texts = texts_of(client.get(path).text) - available_timezones()
            found |= {(page, text) for text in texts if WORD.search(DATA.sub("", text))}
    assert found == set()
