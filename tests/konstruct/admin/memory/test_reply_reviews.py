"""The review of replies in the admin: a random reply, its mark, and permissions."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from konstruct.orchestrator.models import ReplyReview
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

REVIEW = "/admin/replies/review/"
PERMISSIONS = ("add_replyreview", "view_message")


def reply_of(program: Program) -> Message:
    with tenant_scope(program.tenant.id):
        return Message.objects.filter(role="assistant", recall_event__isnull=False).earliest(
            "number"
        )


def marks(program: Program) -> list[tuple[str, str]]:
    with tenant_scope(program.tenant.id):
        return list(ReplyReview.objects.order_by("created_at").values_list("mark", "note"))


def test_random_replies_are_marked_until_none_is_left(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    client, seen = browser(populated_a.tenant, *PERMISSIONS), []
    for mark in ("right", "wrong", "unsure"):
        page = client.get(REVIEW)
        seen.append(page.context["reply"].pk)
        assert "Sources of the reply" in page.text
        note = f"<script>{mark}</script>"
        done = client.post(REVIEW, {"reply": seen[-1], "mark": mark, "note": note}, follow=True)
        assert f"Marked as {mark}." in done.text
    assert len(set(seen)) == 3
    assert "No reply is left to be marked" in client.get(REVIEW).text
    assert [mark for mark, _ in marks(populated_a)] == ["right", "wrong", "unsure"]
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.filter(action="create", subject="reply review").latest("id")
    assert (event.user_id, event.detail["after"]["mark"]) == ("maria", "unsure")
    listed = browser(populated_a.tenant).get("/admin/orchestrator/replyreview/")
    assert "&lt;script&gt;right&lt;/script&gt;" in listed.text
    assert "<script>right" not in listed.text


def test_a_reviewer_has_one_mark_on_a_reply_and_another_has_their_own(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    reply = reply_of(populated_a).pk
    first, second = (browser(populated_a.tenant, *PERMISSIONS) for _ in range(2))
    first.post(REVIEW, {"reply": reply, "mark": "wrong"})
    first.post(REVIEW, {"reply": reply, "mark": "right", "note": "After all."})
    second.post(REVIEW, {"reply": reply, "mark": "unsure"})
    assert marks(populated_a) == [("right", "After all."), ("unsure", "")]


@pytest.mark.parametrize(
    "form",
    [
        {"mark": "right"},
        {"mark": "great", "reply": "REPLY"},
        {"mark": "right", "reply": "x"},
        {"mark": "right", "reply": str(uuid4())},
        {"mark": "right", "reply": "REPLY", "note": "\0"},
        {"mark": "right", "reply": "REPLY", "note": "x" * 2001},
        {"mark": "right", "reply": "ASKED"},
    ],
)
def test_invalid_review_is_refused_with_a_warning(
    populated_a: Program, browser: Callable[..., Client], form: dict[str, Any]
) -> None:
    reply = reply_of(populated_a)
    known = {"REPLY": reply.pk, "ASKED": reply.in_reply_to_id}
    posted = {name: known.get(value, value) for name, value in form.items()}
    answer = browser(populated_a.tenant, *PERMISSIONS).post(REVIEW, posted, follow=True)
    assert answer.status_code == 200
    assert marks(populated_a) == []


def test_a_reply_of_the_other_tenant_is_not_marked(
    populated_a: Program, populated_b: Program, browser: Callable[..., Client]
) -> None:
    reply = reply_of(populated_b).pk
    browser(populated_a.tenant, *PERMISSIONS).post(REVIEW, {"reply": reply, "mark": "right"})
    assert (marks(populated_a), marks(populated_b)) == ([], [])


def test_an_auditor_sees_marks_and_sets_none(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    auditor = browser(populated_a.tenant, "view_replyreview", "view_message")
    assert auditor.get("/admin/orchestrator/replyreview/").status_code == 200
    assert auditor.get(REVIEW).status_code == 403
    reply = reply_of(populated_a).pk
    assert auditor.post(REVIEW, {"reply": reply, "mark": "right"}).status_code == 403
    without_texts = browser(populated_a.tenant, "add_replyreview").get(REVIEW)
    assert without_texts.context["reply"] is None


def test_replies_are_sampled_by_agent_and_channel(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(populated_a.tenant, *PERMISSIONS)
    assert client.get(f"{REVIEW}?agent={populated_a.agent.pk}&channel=rest").context["reply"]
    for query in (f"?agent={uuid4()}", "?channel=slack", "?channel=%00%22%3E"):
        assert client.get(REVIEW + query).context["reply"] is None or "%00" in query
