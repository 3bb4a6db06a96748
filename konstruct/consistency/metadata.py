"""Checks that the attributes of messages match their metadata."""

from collections.abc import Iterator, Sequence

from django.db.models import Exists, OuterRef, Q

from konstruct.consistency.facts import attributes_differ
from konstruct.consistency.records import Finding
from memory.conversations.metadata import write_attributes
from memory.models import Message, MessageAttribute
from tenants import transaction

DIFFERENT = "attributes of a message differ from its metadata"


def count() -> dict[str, int]:
    """Return no counts: other checks count messages."""
    return {}


def check() -> Iterator[Finding]:
    """Compute the attributes of every message with metadata or attributes."""
    of_message = MessageAttribute.objects.filter(message_id=OuterRef("pk"))
    messages = Message.objects.filter(Q(metadata__isnull=False) | Exists(of_message))
    messages = messages.only("pk", "metadata").prefetch_related("attributes")
    for message in messages.iterator(chunk_size=500):
        if attributes_differ(message.metadata or {}, message.attributes.all()):
            yield Finding(DIFFERENT, str(message.pk))


def rewrite_attributes(findings: Sequence[Finding]) -> None:
    """Write the attributes from the metadata. Needs the owner's role."""
    ids = [finding.subject for finding in findings]
    with transaction.atomic():
        MessageAttribute.objects.filter(message_id__in=ids).delete()
        write_attributes(Message.objects.filter(pk__in=ids))


REPAIRS = {DIFFERENT: rewrite_attributes}
