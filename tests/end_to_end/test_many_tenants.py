"""Concurrent tenants on one web process and one worker: no tenant sees data of another."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from tests.end_to_end.deployment import SLUGS, Deployment, Tenant, eventually
from tests.servers.llm import Request

pytestmark = pytest.mark.long

# Tenants of the long run, in addition to those of the deployment.
MORE_SLUGS = ["fir", "yew", "bay", "fig"]
USERS = ("maria", "eve")
MESSAGES_EACH = 12
OBJECTS = ("bicycle", "cello", "lamp", "garden", "kettle", "boat")


def secret_of(tenant: Tenant) -> str:
    """Return a word that only this tenant's users write."""
    return f"{tenant.slug}zzyx"


def foreign_words(text: str, tenant: Tenant, everyone: list[Tenant]) -> list[str]:
    """Return the secrets, ids and keys of other tenants in a text."""
    return [
        word
        for other in everyone
        if other is not tenant
        for word in (secret_of(other), str(other.id), other.id.hex, str(other.agent_id))
        if word in text
    ]


def talk(tenant: Tenant, seed: int) -> list[tuple[str, str]]:
    """Send messages of two users in a random order, by key or by host. Return ids and texts."""
    random_ = random.Random(seed)
    sent = []
    for number in range(MESSAGES_EACH):
        user = random_.choice(USERS)
        object_ = random_.choice(OBJECTS)
        text = random_.choice(
            [
                f"My {object_} is called {secret_of(tenant)}-{number}.",
                f"What is my {object_} called? ({secret_of(tenant)})",
            ]
        )
        host = random_.choice(["localhost", f"{tenant.slug}.localhost"])
        body = {
            "agent": "ada",
            "user_id": user,
            "thread_id": random_.choice(["work", "home"]),
            "content": text,
        }
        with tenant.client(host) as client:
            response = client.post("/api/v1/messages/", json=body)
        assert response.status_code == 202, response.text
        sent.append((response.json()["id"], text))
    return sent


@dataclass
class Spoken:
    """The sent messages by tenant, and the requests to the language model."""

    tenants: list[Tenant]
    sent: dict[str, list[tuple[str, str]]]
    asked: list[Request]


@pytest.fixture(
    scope="module",
    params=[SLUGS, pytest.param([*SLUGS, *MORE_SLUGS], marks=pytest.mark.long)],
    ids=["three", "seven"],
)
def conversations(request: pytest.FixtureRequest, shared_deployment: Deployment) -> Spoken:
    """All users send at once. The fixture waits for all replies."""
    deployment = shared_deployment
    deployment.llm.forget()
    made = {tenant.slug for tenant in deployment.tenants}
    if missing := [slug for slug in request.param if slug not in made]:
        deployment.add_tenants(*missing)
    tenants = deployment.tenants[: len(request.param)]
    with ThreadPoolExecutor(len(tenants)) as threads:
        sent = dict(
            zip(
                [tenant.slug for tenant in tenants],
                threads.map(talk, tenants, range(len(tenants))),
                strict=True,
            )
        )
    for tenant in tenants:
        for message_id, _ in sent[tenant.slug]:
            tenant.wait_for(message_id)
    return Spoken(tenants, sent, [*deployment.llm.requests])


def test_everything_is_answered_and_remembered_once(conversations: Spoken) -> None:
    for tenant in conversations.tenants:
        tenant.assert_whole(users=USERS)


def test_no_prompt_holds_a_word_of_another_tenant(conversations: Spoken) -> None:
    """The prompts contain recalled messages and the window."""
    by_secret = {secret_of(tenant): tenant for tenant in conversations.tenants}
    remembering = 0
    for request in conversations.asked:
        (secret,) = set(re.findall(r"[a-z]{3}zzyx", request.question))
        text = str(request.body)
        assert foreign_words(text, by_secret[secret], conversations.tenants) == []
        remembering += text.count(secret) > 1
    assert len(conversations.asked) >= MESSAGES_EACH * len(conversations.tenants)
    assert remembering > len(conversations.asked) // 2


def test_no_list_holds_a_message_of_another_tenant(conversations: Spoken) -> None:
    for tenant in conversations.tenants:
        with tenant.client() as client:
            page = client.get("/api/v1/messages/?limit=200")
        assert foreign_words(page.text, tenant, conversations.tenants) == []
        listed = {(row["id"], row["content"]) for row in page.json()["results"]}
        assert listed >= set(conversations.sent[tenant.slug])


def test_no_message_of_another_tenant_can_be_asked_for(conversations: Spoken) -> None:
    for tenant in conversations.tenants:
        for other in conversations.tenants:
            if other is not tenant:
                message_id, _ = conversations.sent[other.slug][0]
                with tenant.client() as client:
                    response = client.get(f"/api/v1/messages/{message_id}/")
                assert response.status_code == 404
                with tenant.client(f"{other.slug}.localhost") as client:
                    response = client.get(f"/api/v1/messages/{message_id}/")
                assert response.status_code == 401


def log_in(browser: httpx.Client) -> None:
    """Log in as the tenant's admin."""
    browser.get("/admin/login/")
    form = {
        "username": "eva",
        "password": "pw",
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        "next": "/admin/",
    }
    page = browser.post("/admin/login/", data=form)
    assert page.status_code == 200
    assert browser.cookies.get("sessionid")


def test_no_admin_page_shows_anything_of_another_tenant(
    deployment: Deployment, conversations: Spoken
) -> None:
    for tenant in conversations.tenants[:3]:
        text = ""
        host = f"{tenant.slug}.localhost:{deployment.port}"
        with httpx.Client(
            base_url=deployment.url, headers={"Host": host}, timeout=90, follow_redirects=True
        ) as browser:
            log_in(browser)
            index = browser.get("/admin/").text + browser.get("/admin/records/").text
            lists = sorted(set(re.findall(r'href="(/admin/[a-z_]+/[a-z_]+/)"', index)))
            assert {"/admin/orchestrator/agent/", "/admin/memory/message/"} <= set(lists)
            for address in lists:
                page = browser.get(address)
                assert page.status_code == 200
                text += page.text
                row = re.search(rf'href="({address}[^"/]+/change/)', page.text)
                if row is not None:
                    text += browser.get(row[1]).text
        assert foreign_words(text, tenant, conversations.tenants) == []
        assert secret_of(tenant) in text


def test_a_list_is_exported_by_a_worker_and_downloaded_once(
    deployment: Deployment, conversations: Spoken
) -> None:
    tenant = conversations.tenants[0]
    host = f"{tenant.slug}.localhost:{deployment.port}"
    with httpx.Client(
        base_url=deployment.url, headers={"Host": host}, timeout=90, follow_redirects=True
    ) as browser:
        log_in(browser)
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        page = browser.post("/admin/memory/message/export/?role__exact=user", data=token)
        assert page.status_code == 200
        eventually(lambda: "data-download" in browser.get(page.url).text, "no file was written")
        (address,) = re.findall(
            r'href="(/admin/exports/[^"]+/download/)"', browser.get(page.url).text
        )
        file = browser.get(address)
        assert file.headers["Content-Disposition"].startswith('attachment; filename="message-')
        assert foreign_words(file.text, tenant, conversations.tenants) == []
        assert secret_of(tenant) in file.text
        assert "The file was downloaded" in browser.get(address).text
