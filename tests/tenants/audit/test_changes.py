"""Recorded changes of a row, and values that are never recorded."""

from django.apps import apps

from tenants.audit.changes import (
    MAX_VALUE_CHARACTERS,
    NO_STATE,
    RowState,
    abridge,
    differences,
    is_secret,
    row_state,
)
from tenants.models import Tenant


def test_only_changed_fields_are_recorded() -> None:
    before = RowState({"a": 1, "b": "x", "c": None})
    after = RowState({"a": 1, "b": "y", "c": [1]})
    assert differences(before, after) == {
        "before": {"b": "x", "c": None},
        "after": {"b": "y", "c": [1]},
    }
    assert differences(before, before) == {}


def test_created_and_deleted_rows_have_one_side() -> None:
    row = RowState({"a": 1, "b": "", "c": None, "d": False}, {"password": "hash"})
    assert differences(NO_STATE, row) == {"after": {"a": 1, "d": False}}
    assert differences(row, NO_STATE) == {"before": {"a": 1, "d": False}}


def test_changed_secrets_are_named_without_their_values() -> None:
    before = RowState({"a": 1}, {"password": "old", "token": "same"})
    after = RowState({"a": 1}, {"password": "new", "token": "same"})
    assert differences(before, after) == {"withheld": ["password"]}
    assert "old" not in repr(before)


def test_long_texts_are_cut_where_they_begin_to_differ() -> None:
    same = "x" * 10_000
    difference = differences(
        RowState({"p": f"{same}old{same}"}), RowState({"p": f"{same}new{same}"})
    )
    for side, word in (("before", "old"), ("after", "new")):
        assert word in difference[side]["p"]
        assert len(difference[side]["p"]) == MAX_VALUE_CHARACTERS + 2
        assert difference[side]["p"].startswith("…x")


def test_row_is_serialized_as_json_without_deferred_fields() -> None:
    tenant = Tenant(slug="acme", name="Acme\0")
    values = row_state(tenant).fields
    assert values["id"] == str(tenant.id)
    assert values["name"] == "Acme"
    assert "migrated_to" not in values


def test_every_field_that_holds_a_secret_is_known_by_its_name() -> None:
    """All models of the project and of Django. A field with another name must be added here."""
    secrets = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.concrete_fields
        if is_secret(field.name)
    }
    assert secrets == {
        "api.ApiKey.secret_digest",
        "api.IdempotencyRecord.digest",
        "auth.User.password",
        "channels.SlackInstallation.encrypted_token",
        "memory.FactEvidence.source_digest",
        "memory.MemoryEntry.content_digest",
        "orchestrator.ExtractionRun.prompt_digest",
        "outbox.Webhook.previous_secret",
        "outbox.Webhook.secret",
    }


def test_nested_values_of_requests_are_shortened() -> None:
    assert abridge({"q": "y" * 999, "n": 1}) == {"q": "y" * 500 + "…", "n": 1}
