"""Saved questions that name an erased person are deleted with the person."""

from typing import Any

import pytest

from konstruct.orchestrator.dry_runs import save_question
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from konstruct.privacy.erasure import carry_out
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

MARIA = "U07:maria%"
EVA = Actor(ActorKind.PERSON, "1", "eva")
NAMING = ["What does José Lopez like?", "Ask jOSÉ   LOPEZ.", f"Who is {MARIA}?", "Call Pepa!"]
OTHERS = ["Who is Ana?", "Is Joséphine Lopez in?", "José likes Lopez.", "Pepaland, U07:maria"]


def save(agent: Agent, tenant: Tenant) -> None:
    """Save questions, some of which name Maria."""
    for content in [*NAMING, *OTHERS]:
        question = save_question(agent, content=content)
        QuestionAnswer.objects.create(
            question=question, agent_id=agent.pk, version=1, content="Yes."
        )


def kept() -> set[str]:
    return set(SavedQuestion.objects.values_list("content", flat=True))


@pytest.fixture
def named_people(tenant_a: Tenant, send_message: SendMessage) -> None:
    """Maria under two names, one of an account, and Ana under a name that Maria has, too."""
    send_message("Hello.", MARIA, "t1", name="José Lopez")
    send_message("Hello.", MARIA, "t2", name="Ana")
    send_message("Hello.", MARIA, "t2", name="Bo")
    send_message("Hello.", "ana", "t3", name="ÁNA")
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U1", name="Pepa")
        channel_identities.link(identity, MARIA, by="eva")


def test_rows_naming_the_person_are_deleted_in_this_tenant_only(
    tenant_a: Tenant, tenant_b: Tenant, agent: Agent, named_people: None
) -> None:
    with tenant_scope(tenant_b.id):
        save(Agent.objects.create(name="ada"), tenant_b)
        every = kept()
    with database.as_owner(), tenant_scope(tenant_a.id):
        save(agent, tenant_a)
        receipt: Any = carry_out(request_erasure(MARIA, by=EVA)).receipt
        assert kept() == set(OTHERS)
        assert set(
            QuestionAnswer.objects.values_list("question__content", flat=True)
        ) == set(OTHERS)  # fmt: skip
        tables = receipt["tables"]
        assert tables["orchestrator_savedquestion"]["removed"] == 4
        assert tables["orchestrator_questionanswer"]["removed"] == 4
    with tenant_scope(tenant_b.id):
        assert kept() == every


def test_an_erasure_by_one_agent_leaves_the_questions_to_others(
    tenant_a: Tenant, agent: Agent, named_people: None
) -> None:
    with database.as_owner(), tenant_scope(tenant_a.id):
        other = Agent.objects.create(name="bo")
        save(other, tenant_a)
        save_question(agent, content="Who is Pepa?")
        carry_out(request_erasure(MARIA, by=EVA, agent_id=agent.pk))
        assert not SavedQuestion.objects.filter(agent_id=agent.pk).exists()
        assert SavedQuestion.objects.filter(agent_id=other.pk).count() == 8


def test_unknown_id_deletes_no_saved_question(tenant_a: Tenant, agent: Agent) -> None:
    with database.as_owner(), tenant_scope(tenant_a.id):
        save_question(agent, content="Which agent are you?")
        carry_out(request_erasure("agent", by=EVA))
        assert SavedQuestion.objects.count() == 1
