"""Tables of saved questions, which an agent answers after each change, and of the answers."""

from django.db import models
from django.db.models.functions import Now

from tenants.fields import count, id_list, optional_text, random_id, text_list
from tenants.models import TenantModel
from tenants.personal_data import Export, rows_of_user


class SavedQuestion(TenantModel):
    """A question that an agent is asked again after each change."""

    id = random_id()
    agent_id = models.UUIDField("agent", help_text="The agent that is asked.")
    user_id = models.TextField(  # noqa: DJ001  (null: no single user; '' would be a user)
        "person", null=True, blank=True, help_text="The person who asks. Empty: none."
    )
    content = models.TextField("question", help_text="The message.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was saved.")

    personal_data = rows_of_user(
        # Questions that name the person.
        also="content ~* ANY(%(names)s::text[])"
        " AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)",
        export=Export(kind="saved_questions", position=25),
    )

    class Meta:
        verbose_name = "saved question"
        indexes = [models.Index(fields=["agent_id", "created_at"], name="saved_question_agent")]

    def __str__(self) -> str:
        return self.content[:60]


class QuestionAnswer(TenantModel):
    """An agent's answer to a saved question, by one version of the agent."""

    id = random_id()
    question = models.ForeignKey(
        SavedQuestion,
        on_delete=models.CASCADE,
        related_name="answers",
        db_index=False,
        help_text="The question.",
    )
    agent_id = models.UUIDField("agent", help_text="The agent that answered.")
    user_id = models.TextField(  # noqa: DJ001  (null: no single user; '' would be a user)
        "person", null=True, blank=True, help_text="The person who asks. Empty: none."
    )
    version = models.PositiveIntegerField(
        help_text="Number of the agent's version. 0: before its first version."
    )
    content = optional_text("answer", help_text="The answer; may be empty.")
    steps = text_list(help_text="The decision and its reason.")
    problem = optional_text(help_text="Why there is no answer.")
    message_ids = id_list(help_text="The messages in the prompt: recalled ones and recent turns.")
    source_count = count(help_text="Recalled messages and facts in the prompt.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was answered.")

    # The answer quotes messages: it is deleted with any of them.
    personal_data = rows_of_user(
        derived="message_ids && %(ids)s::uuid[]",
        also="question_id IN (SELECT id FROM orchestrator_savedquestion WHERE "  # noqa: S608
        f"{SavedQuestion.personal_data.of_person})",
        # Another run replaces the answer of a version.
        export=Export(
            kind="question_answers",
            position=26,
            key=("question_id", "version"),
            is_mutable=True,
        ),
    )

    class Meta:
        verbose_name = "answer to a saved question"
        verbose_name_plural = "answers to saved questions"
        constraints = [
            models.UniqueConstraint(fields=["question", "version"], name="question_answer_version"),
        ]

    def __str__(self) -> str:
        return f"version {self.version}: {self.content[:60]}"
