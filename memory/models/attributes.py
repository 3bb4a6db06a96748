"""Tables of the values of metadata, which b-trees index.

Postgres does not use a GIN index on the JSON itself under row-level security, because its operators
are not leakproof; those of text and double precision are.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db import models

from memory.models.metadata_filters import Condition, metadata_values, parse_filters
from tenants.models import TenantModel
from tenants.personal_data import PersonalData

A = TypeVar("A", bound="Attribute")
Q = TypeVar("Q", bound="models.QuerySet[Any]")


class Attribute(TenantModel):
    """One value of the metadata of a row."""

    id = models.BigAutoField(primary_key=True)
    key = models.TextField(
        db_collation="C", help_text="Path of the value; the keys of inner objects follow a dot."
    )
    kind = models.TextField(help_text="text, number, literal (true, false, null), object or list.")
    text = models.TextField(  # noqa: DJ001  (null: a number; '' is a text)
        db_collation="C", null=True, help_text="A text (a long one abridged), or a literal."
    )
    number = models.FloatField(null=True, help_text="A number.")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.key} = {self.text if self.number is None else self.number}"


class MessageAttribute(Attribute):
    """One value of a message's metadata, indexed by a b-tree. Append-only."""

    message = models.ForeignKey(
        "memory.Message",
        on_delete=models.PROTECT,
        related_name="attributes",
        help_text="The message.",
    )

    # An archive has the metadata, from which the import makes these rows again.
    personal_data = PersonalData(message="message_id")

    class Meta:
        verbose_name = "message attribute"
        indexes = [
            models.Index(
                fields=["key", "kind", "text", "message"],
                include=["tenant_id"],
                name="message_attribute_text",
            ),
            models.Index(
                fields=["key", "number", "message"],
                include=["tenant_id"],
                condition=models.Q(number__isnull=False),
                name="message_attribute_number",
            ),
        ]


def attributes_of(model: type[A], metadata: Mapping[str, Any], **foreign_key: Any) -> list[A]:
    """Return unsaved attributes for the values of some metadata.

    Args:
        model: the class of the attributes.
        metadata: of a message or a fact.
        foreign_key: the foreign key of the attributes, such as `message_id=…`.
    """
    return [
        model(key=key, kind=value.kind, text=value.text, number=value.number, **foreign_key)
        for key, value in metadata_values(metadata)
    ]


def with_metadata(rows: Q, filters: Mapping[str, Any], attributes: type[Attribute], of: str) -> Q:
    """Return the rows with metadata that fulfil the filters: see `memory.models.metadata_filters`.

    Args:
        of: the column of the attributes that refers to the row.
    """
    for condition in parse_filters(filters):
        matches = matching_attributes(condition, attributes).values(of)
        if condition.operator == "missing":
            rows = rows.exclude(pk__in=matches)
        else:
            rows = rows.filter(pk__in=matches)
    return rows


def matching_attributes(
    condition: Condition, attributes: type[Attribute]
) -> "models.QuerySet[Any]":
    """Return the attributes that fulfil a condition, read by a b-tree."""
    rows = attributes._default_manager.filter(key=condition.key)
    if condition.operator in ("exists", "missing"):
        return rows
    if condition.operator != "in":
        (bound,) = condition.values
        column = "number" if bound.kind == "number" else "text"
        return rows.filter(
            kind=bound.kind, **{f"{column}__{condition.operator}": getattr(bound, column)}
        )
    is_one_of = models.Q(number__in=[v.number for v in condition.values if v.kind == "number"])
    for kind in ("text", "literal"):
        texts = [value.text for value in condition.values if value.kind == kind]
        is_one_of |= models.Q(kind=kind, text__in=texts)
    return rows.filter(is_one_of)
