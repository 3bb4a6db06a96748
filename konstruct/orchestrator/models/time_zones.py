"""Table of time zones in which members of the team read times."""

from django.db import models

from tenants.fields import random_id
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class TeamTimeZone(TenantModel):
    """The time zone of a member of the team, or the default of all others."""

    id = random_id()
    member_id = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="Id of the member of the team. Empty: the default of all others.",
    )
    name = models.TextField(help_text="The time zone, such as Europe/Berlin.")

    personal_data = NoPersonalData("time zones of the team")

    class Meta:
        verbose_name = "time zone"
        constraints = [
            models.UniqueConstraint(
                fields=["member_id"], nulls_distinct=False, name="team_time_zone_member"
            ),
        ]

    def __str__(self) -> str:
        return self.name
