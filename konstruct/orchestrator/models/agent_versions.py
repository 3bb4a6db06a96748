"""Table of the versions of agents: the settings after each change, with their author."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from tenants.fields import optional_number, optional_text, random_id, text_list
from tenants.models import TenantModel
from tenants.personal_data import Export, NoPersonalData


class AgentVersion(TenantModel):
    """The settings of an agent after a change. Never changed."""

    id = random_id()
    agent_id = models.UUIDField("agent", help_text="The agent.")
    number = models.PositiveIntegerField(help_text="1 for the first version of the agent.")
    settings = models.JSONField(help_text="All settings of the agent, by the names of its columns.")
    changed = text_list(
        blank=True, help_text="Names of the settings that differ from the version before."
    )
    restores = optional_number(help_text="Number of the version that this one restores.")
    note = optional_text(help_text="The author's note on the change.")
    author = models.TextField(
        help_text="Kind and id of the author, such as person:7; system: for the platform."
    )
    author_name = optional_text(help_text="Name of the author at that time.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When the agent changed.")

    personal_data = NoPersonalData(
        "what the tenant's people write of an agent",
        # A tenant that has imported an agent numbers its own changes from there.
        export=Export(
            kind="agent_versions",
            position=24,
            key=("agent_id", "number"),
            is_mutable=True,
            where="%(user)s::text IS NULL",
        ),
    )

    class Meta:
        verbose_name = "version of an agent"
        verbose_name_plural = "versions of agents"
        constraints = [
            models.UniqueConstraint(fields=["agent_id", "number"], name="agent_version_number"),
        ]

    def __str__(self) -> str:
        return gettext("version %(number)s of %(agent)s") % {
            "number": self.number,
            "agent": self.agent_id,
        }
