"""Table of saved views: filters of a list of the admin, under a name."""

from django.core.validators import ProhibitNullCharactersValidator
from django.db import models
from django.db.models.functions import Now

from tenants.fields import flag, random_id
from tenants.models import TenantModel
from tenants.personal_data import PersonalData


class SavedView(TenantModel):
    """The filters and the order of a list, for one member of the team or for all of them."""

    id = random_id()
    page = models.TextField(help_text="The list, by its model: memory.message …")
    name = models.CharField(
        max_length=80, validators=[ProhibitNullCharactersValidator()], help_text="Name of the view."
    )
    query = models.TextField(
        help_text="Filters and order as parameters of an address; no user's id and no search words."
    )
    owner_id = models.BigIntegerField(help_text="Id of the member of the team who saved it.")
    is_shared = flag(default=False, help_text="Whether all members of the team see it.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was saved.")

    personal_data = PersonalData(key="id", named_in=("name", "query"))

    class Meta:
        verbose_name = "saved view"
        permissions = [("export_list", "Can export the rows of lists as CSV and JSON")]
        constraints = [
            models.UniqueConstraint(fields=["page", "owner_id", "name"], name="saved_view_name"),
        ]

    def __str__(self) -> str:
        return self.name
