"""Trials: dry runs that compare an agent with a draft of its new settings.

A trial is not stored: the caller keeps it between two messages, as a signed text.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from django.core import signing

from konstruct.orchestrator.exceptions import TrialUnreadable
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.dry_run import DryReply, DryThread, dry_run
from tenants.context import required_tenant_id

# The text of a trial is sent with the next message, and must leave room for it.
MAX_TRIAL_CHARACTERS: Final = 1_000_000
MAX_AGE_SECONDS: Final = 24 * 3600

PROMPT_FIELDS: Final = ("system_prompt", "identity", "persona")
MODEL_FIELDS: Final = ("model_tier", "model", "max_completion_tokens")
RULE_FIELDS: Final = ("tools", "escalate_on", "hands_to", "hand_over_on", "hand_back_on")
RECALL_FIELDS: Final = (
    *("recall_mode", "recall_top_k", "recall_neighbours", "recall_gate", "recall_preset"),
    *("recall_open_at", "recall_keep_at", "recall_weights"),
)
DRAFT_FIELDS: Final = (*PROMPT_FIELDS, *MODEL_FIELDS, *RULE_FIELDS, *RECALL_FIELDS)
"""The settings of an agent that change what a dry run answers."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The conversations of an agent and of a draft of it with the same person."""

    user_id: str | None = None
    """The person; None: a person without memories."""
    threads: Mapping[str, DryThread] = field(default_factory=lambda: {"live": DryThread()})
    """`live` is the agent's; `draft` exists once a draft has answered."""

    @property
    def is_full(self) -> bool:
        """Whether the trial accepts no more messages."""
        return any(thread.is_full for thread in self.threads.values())

    def ask(
        self, content: str, agent: Agent, draft: Agent | None = None
    ) -> tuple["Trial", dict[str, DryReply]]:
        """Send a message to the agent, and to a draft of it.

        The first message to a draft continues the agent's conversation. Do not call it in a
        transaction: it waits for the language model.

        Returns:
            The trial with the replies, and the replies by the names of `threads`.

        Raises:
            Busy: the tenant has the maximum number of requests to the language model.
        """
        agents = {"live": agent} if draft is None else {"live": agent, "draft": draft}
        replies = {
            name: dry_run(
                self.threads.get(name, self.threads["live"]), content, agent, user_id=self.user_id
            )
            for name, agent in agents.items()
        }
        threads = {name: reply.thread for name, reply in replies.items()}
        return Trial(self.user_id, threads), replies

    def sign(self, agent: Agent, author: str) -> str:
        """Return the trial as a text that `read` accepts from the same author.

        Args:
            agent: the agent.
            author: id of the program or person that runs the trial.
        """
        return signing.dumps(asdict(self), salt=_salt(agent, author), compress=True)

    @classmethod
    def read(cls, text: str, agent: Agent, author: str) -> Self:
        """Return the trial of a text that `sign` has made.

        Raises:
            TrialUnreadable: the text is of another author or agent, was changed, or is older than
                MAX_AGE_SECONDS.
        """
        try:
            document: dict[str, Any] = signing.loads(
                text, salt=_salt(agent, author), max_age=MAX_AGE_SECONDS
            )
        except signing.BadSignature as error:
            raise TrialUnreadable(
                "The conversation has ended, or is not one of yours with this agent."
            ) from error
        threads = {
            name: DryThread.from_dict(thread) for name, thread in document["threads"].items()
        }
        return cls(document["user_id"], threads)


def changes_of(draft: Agent, agent: Agent) -> dict[str, Any]:
    """Return the values of the draft that differ from the agent's, ignoring line ends."""
    return {
        name: getattr(draft, name)
        for name in DRAFT_FIELDS
        if _comparable(getattr(draft, name)) != _comparable(getattr(agent, name))
    }


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip()
    return sorted(value, key=str) if isinstance(value, list) else value


def _salt(agent: Agent, author: str) -> str:
    # The number is the version of the text: change it with the fields of Trial and DryThread.
    return f"dry-run:2:{required_tenant_id()}:{agent.pk}:{author}"
