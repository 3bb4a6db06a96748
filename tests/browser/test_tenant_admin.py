"""A tenant's admin in a real browser: each documented feature once."""

from collections.abc import Callable

from playwright.sync_api import expect

from konstruct.orchestrator import pipeline
from memory.conversations.short_term import get_recent_messages
from memory.models import Message
from tenants.audit.models import AccessEvent, ErasureRequest
from tenants.context import tenant_scope
from tests.browser.conftest import USER, Aurora, BrowserUser

WINDOW = "The recent turns are cleared. Long-term memory stays."


def test_an_admin_audits_what_an_agent_remembers(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    aurora = demo_tenant
    admin = visit(aurora.host)
    admin.log_in("admin")
    page = admin.page
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    failed = page.locator(".k-waiting li", has_text="Failed reply")
    expect(failed.get_by_role("button", name="Retry").first).to_be_visible()

    # A memory is found by meaning, and links to its conversation.
    page.locator('#nav-sidebar-apps a[href="/admin/records/"]').click()
    page.get_by_role("link", name="Memories", exact=True).click()
    page.get_by_label("Agent").select_option("Iris")
    page.get_by_label("User").fill(USER)
    page.get_by_label("Question").fill("Which food allergy do I have?")
    page.get_by_role("button", name="Recall").click()
    found = page.get_by_role("region", name="Recalled").get_by_role("article")
    memory = found.filter(has_text="I am allergic to shellfish").first
    memory.get_by_text("Score").click()
    expect(memory.get_by_text("meaning", exact=True)).to_be_visible()
    memory.get_by_role("link", name="Open conversation").click()
    expect(page.get_by_text("Please never book me a seafood restaurant.").first).to_be_visible()

    # A reply shows its sources.
    admin.open(f"/admin/conversations/{aurora.reply.pk}/")
    page.locator(f"#m{aurora.reply.pk}").get_by_role("link", name="Why?").click()
    sources = page.get_by_role("complementary", name="Sources of the reply")
    expect(sources.get_by_text("What am I allergic to?").first).to_be_visible()
    expect(sources.get_by_text("The prompt, as it was sent")).to_be_visible()
    expect(sources.get_by_text("Recalled memories")).to_be_visible()

    # A failed message shows its error, and is retried.
    failed = page.locator(f"#m{aurora.failed.pk}")
    expect(failed.get_by_text("no such model")).to_be_visible()
    failed.get_by_role("button", name="Try again to answer").click()
    expect(page.get_by_text("The message will be answered in a moment.")).to_be_visible()
    pipeline.handle(tenant_id=aurora.tenant.id, message_id=aurora.failed.pk)  # as the worker does
    page.reload()
    expect(failed.get_by_text("answered", exact=True)).to_be_visible()

    # The window is cleared after a confirmation.
    page.get_by_role("link", name="Recent turns").click()
    page.get_by_role("link", name="Clear recent turns").click()
    page.get_by_role("button", name="Clear recent turns").click()
    expect(page.get_by_text(WINDOW)).to_be_visible()
    assert get_recent_messages(aurora.tenant.id, aurora.agent.pk, USER) == []

    # A fact is edited, and the old version stays.
    admin.open(f"/admin/memory/memoryentry/{aurora.fact}/change/")
    page.get_by_role("textbox", name="Content").fill("Sam is allergic to shellfish and to walnuts.")
    page.get_by_role("button", name="Save", exact=True).click()
    admin.open(f"/admin/memory/memoryentry/{aurora.fact}/history/")
    expect(page.locator("del").first).to_have_text("nuts")
    expect(page.locator("ins").first).to_have_text("walnuts")

    # An erasure of the person is requested with a confirmation.
    admin.open(f"/admin/people/person/?user={USER}")
    page.get_by_role("link", name="Request erasure").click()
    page.get_by_label("Reason").fill("Sam asked for it.")
    page.get_by_label("The user’s id").fill(USER)
    page.get_by_role("button", name="Request erasure").click()
    expect(page.get_by_role("heading", name="The erasure is not done yet")).to_be_visible()

    with tenant_scope(aurora.tenant.id):
        done = set(AccessEvent.objects.values_list("action", flat=True))
        assert ErasureRequest.objects.latest("created_at").user_id == USER
        assert Message.objects.filter(in_reply_to=aurora.failed).exists()
    assert {"view", "search", "retry", "clear", "edit", "erase"} <= done
