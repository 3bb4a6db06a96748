"""Checks that people can be found by the names of their messages."""

from collections.abc import Iterator, Sequence

from django.db.models import Exists, OuterRef
from django.db.models.functions import Length

from konstruct.consistency.records import Finding
from memory.conversations.names import MAX_NAME_CHARACTERS, has_storable_name, record_names
from memory.models import Message, PersonName, Role

NO_NAME = "name of a user that is missing in the search of people"
NO_MESSAGE = "name of a user that no message has"


def count() -> dict[str, int]:
    """Return no counts: other checks count messages."""
    return {}


def check() -> Iterator[Finding]:
    """Compare the names in messages with the searched ones, in both directions.

    The subject of a finding is the message's id, or the user's id with the name as detail.
    """
    kept = PersonName.objects.filter(user_id=OuterRef("user_id"), name=OuterRef("name"))
    named = Message.objects.filter(~Exists(kept), role=Role.USER).exclude(name="")
    named = named.annotate(characters=Length("name")).filter(characters__lte=MAX_NAME_CHARACTERS)
    # One message of each name; the others are empty.
    first = named.order_by("user_id", "name", "created_at", "number").distinct("user_id", "name")
    for message in first.only("id", "role", "name").iterator(chunk_size=500):
        if has_storable_name(message):
            yield Finding(NO_NAME, str(message.pk))
    messages = Message.objects.filter(
        user_id=OuterRef("user_id"), name=OuterRef("name"), role=Role.USER
    )
    for user_id, name in PersonName.objects.filter(~Exists(messages)).values_list(
        "user_id", "name"
    ):
        yield Finding(NO_MESSAGE, user_id, name)


def write(findings: Sequence[Finding]) -> None:
    """Write the names of messages."""
    record_names(Message.objects.filter(pk__in=[finding.subject for finding in findings]))


def remove(findings: Sequence[Finding]) -> None:
    """Remove names without a message. Needs the owner's role."""
    for finding in findings:
        PersonName.objects.filter(user_id=finding.subject, name=finding.detail).delete()


REPAIRS = {NO_NAME: write, NO_MESSAGE: remove}
