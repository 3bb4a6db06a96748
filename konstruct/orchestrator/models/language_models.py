"""The table of a tenant's own language models and rerankers."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import (
    MinValueValidator,
    ProhibitNullCharactersValidator,
    RegexValidator,
)
from django.db import models
from django.db.models.functions import Now

from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class ModelKind(models.TextChoices):
    """What a model is for."""

    LANGUAGE_MODEL = "language_model", "language model: answers and extracts facts"
    RERANKER = "reranker", "reranker: sorts recalled memories"


class LanguageModel(TenantModel):
    """A language model of the tenant: its server, key, prices and limits."""

    id = fields.random_id()
    name = models.CharField(
        max_length=120,
        validators=[ProhibitNullCharactersValidator(), RegexValidator(r"^\S(.*\S)?$")],
        help_text="The name by which agents refer to it. Unique in the tenant.",
    )
    kind = fields.choice(
        ModelKind.LANGUAGE_MODEL,
        help_text="A reranker sorts the memories of agents that name it. Its server is asked at "
        "/rerank below the address.",
    )
    endpoint = fields.optional_char(
        "address",
        max_length=2000,
        help_text="Address of an OpenAI-compatible server, such as https://api.example.com/v1, or "
        "of a pool. Blank: the deployment's server, with its key and its prices.",
    )
    secret_key = fields.optional_text(editable=False, help_text="The key, encrypted.")
    model = fields.optional_char(
        max_length=200,
        validators=[ProhibitNullCharactersValidator()],
        help_text="Name of the model for the server. Blank: the agent's model, or else its tier.",
    )
    prompt_price = fields.money(
        max_digits=12,
        validators=[MinValueValidator(0)],
        help_text="Price of a million input tokens.",
    )
    completion_price = fields.money(
        max_digits=12,
        validators=[MinValueValidator(0)],
        help_text="Price of a million output tokens.",
    )
    timeout_seconds = fields.optional_number(
        help_text="Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a "
        "next one gets at most half of the time that is left. Blank: LLM_TIMEOUT.",
    )
    max_tokens_per_day = fields.optional_number(
        "maximum tokens a day",
        help_text="After this many tokens of a day (UTC) the next model is called. Blank: no "
        "limit.",
    )
    position = fields.optional_small_number(
        help_text="Place among the models of agents without own ones, lowest first. Blank: it is "
        "only for agents that name it.",
    )
    min_score = models.FloatField(
        "minimum score",
        null=True,
        blank=True,
        help_text="Of a reranker: memories with a lower score are left out. Blank: none are.",
    )
    is_active = fields.flag("active", default=True, help_text="Whether it is called.")
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Time of creation."
    )

    personal_data = NoPersonalData("addresses and keys of the tenant's language models")

    class Meta:
        verbose_name = "language model"
        ordering = ["position", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="language_model_name",
                violation_error_message="This tenant has a language model of that name already.",
            ),
            models.CheckConstraint(
                condition=models.Q(kind=ModelKind.LANGUAGE_MODEL)
                | (models.Q(kind=ModelKind.RERANKER, position=None) & ~models.Q(endpoint="")),
                name="language_model_kind",
                violation_error_message="A reranker has an address and no position.",
            ),
            models.CheckConstraint(
                condition=models.Q(timeout_seconds__gt=0) | models.Q(timeout_seconds=None),
                name="language_model_timeout",
                violation_error_message="timeout_seconds: Give 1 or more, or leave it out.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raise ValidationError for an address that no request is sent to, or a long timeout."""
        from konstruct.outgoing import AddressRefused, check_url  # httpx

        if (self.timeout_seconds or 0) > settings.LLM_TIMEOUT:
            raise ValidationError(
                {"timeout_seconds": f"Give at most {settings.LLM_TIMEOUT} (LLM_TIMEOUT)."}
            )
        if not self.endpoint:
            if not settings.LLM_POOL_URL:
                raise ValidationError({"endpoint": "This deployment has no server of its own."})
            return
        try:
            check_url(self.endpoint)
        except AddressRefused as error:
            raise ValidationError({"endpoint": str(error)}) from error
        if "?" in self.endpoint:
            raise ValidationError({"endpoint": "An address with a query is refused."})
