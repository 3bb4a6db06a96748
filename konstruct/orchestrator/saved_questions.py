"""Saved questions: dry runs that ask an agent again after each change."""

from typing import Final
from uuid import UUID, uuid4

from django.db.models import Max

from konstruct.orchestrator.agents import QUESTIONS
from konstruct.orchestrator.exceptions import TooManyQuestions
from konstruct.orchestrator.models import Agent, AgentVersion, QuestionAnswer, SavedQuestion
from konstruct.orchestrator.pipeline.dry_run import DryRun, dry_run
from konstruct.orchestrator.usage import require_storage
from tenants import transaction
from tenants.audit.people import hold_people
from tenants.jobs import Lease, key_of

PURPOSE: Final = "saved questions"
# Each run sends at least one request to the language model for each question.
MAX_QUESTIONS: Final = 20
# Answers of older versions are deleted.
MAX_VERSIONS: Final = 20


def save_question(
    agent: Agent, *, content: str, user_id: str | None = None, question_id: UUID | None = None
) -> SavedQuestion:
    """Save a question to an agent.

    Args:
        agent: the agent, of the current tenant.
        content: the message.
        user_id: the person who asks; None: a person without memories.
        question_id: the id of its row; None: a new one.

    Raises:
        TooManyQuestions: the agent has MAX_QUESTIONS.
        QuotaExceeded: the tenant's storage is full.
    """
    require_storage()
    with transaction.atomic():
        hold_people([user_id], agent_ids=[agent.pk])
        Agent.objects.select_for_update().get(pk=agent.pk)
        if SavedQuestion.objects.filter(agent_id=agent.pk).count() >= MAX_QUESTIONS:
            raise TooManyQuestions(
                f"{agent.name} has {MAX_QUESTIONS} saved questions. Delete one first."
            )
        return SavedQuestion.objects.create(
            id=question_id or uuid4(), agent_id=agent.pk, content=content, user_id=user_id
        )


def enqueue_questions(agent_id: UUID) -> None:
    """Enqueue a job that asks an agent its saved questions."""
    QUESTIONS.enqueue_again(agent_id)


def ask_questions(job: UUID | Lease) -> None:
    """Ask an agent its saved questions, and store the answers for its current version.

    An answer replaces the earlier one of the same version. A killed worker may leave some answers.

    Args:
        job: the job of the agent, or its lease.
    """
    agent_id = key_of(job)

    def ask(lease: Lease) -> None:
        agent = Agent.objects.get(pk=agent_id)
        questions = SavedQuestion.objects.filter(agent_id=agent_id).order_by("created_at")
        version = version_of(agent_id)
        for question in questions[:MAX_QUESTIONS]:
            _ask(question, agent, version, lease)
        with lease.transaction():
            # It was requeued because the agent or its questions have changed.
            if not QUESTIONS.finish(agent_id, unless_requeued=True):
                QUESTIONS.requeue(agent_id)

    QUESTIONS.run(job, ask)


def version_of(agent_id: UUID) -> int:
    """Return the number of the agent's newest version; 0 before its first one."""
    versions = AgentVersion.objects.filter(agent_id=agent_id)
    return versions.aggregate(newest=Max("number"))["newest"] or 0


def _ask(question: SavedQuestion, agent: Agent, version: int, lease: Lease) -> None:
    run = dry_run(agent, question.content, user_id=question.user_id, purpose=PURPOSE)
    message_ids, source_count = _sources(run)
    with lease.transaction():
        # The question may have been deleted, or its person erased.
        if not SavedQuestion.objects.select_for_update().filter(pk=question.pk).exists():
            return
        answers = QuestionAnswer.objects.filter(question=question)
        answers.filter(version=version).delete()
        answers.filter(version__lte=version - MAX_VERSIONS).delete()
        QuestionAnswer.objects.create(
            question=question,
            agent_id=question.agent_id,
            user_id=question.user_id,
            version=version,
            content=run.reply,
            steps=run.steps,
            problem=run.problem,
            message_ids=message_ids,
            source_count=source_count,
        )


def _sources(run: DryRun) -> tuple[list[UUID], int]:
    """Return the messages that the prompt quotes, and the number of recalled sources."""
    if run.prompt is None:
        return [], 0
    gathered = run.prompt.gathered
    recalled_ids = {hit.message_id for hit in gathered.recalled.hits}
    of_facts = {UUID(str(pk)) for fact in gathered.facts for pk in fact.message_ids}
    turn_ids = (turn.get("message_id") for turn in gathered.session_messages)
    message_ids = recalled_ids | of_facts | {UUID(pk) for pk in turn_ids if pk}
    return sorted(message_ids), len(recalled_ids) + len(gathered.facts)
