"""Metadata of messages: labels of programs, by which lists and recall are filtered."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from memory.conf import MAX_MESSAGE_METADATA_BYTES
from memory.exceptions import InvalidArgument
from memory.models import Message, MessageAttribute
from memory.models.attributes import attributes_of, metadata_values, with_metadata


def metadata_argument(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a small JSON object, by the rules of facts' metadata; None if it is empty."""
    if metadata is None:
        return None
    metadata_values(metadata)
    size = len(json.dumps(metadata, ensure_ascii=False, default=list).encode())
    if size > MAX_MESSAGE_METADATA_BYTES:
        raise InvalidArgument(
            f"metadata has {size} bytes as JSON, more than {MAX_MESSAGE_METADATA_BYTES}; leave some"
            " out"
        )
    return dict(metadata) or None


def filter_by_metadata(messages: "QuerySet[Message]", filters: Mapping[str, Any]) -> Any:
    """Return the messages with metadata that match: see `memory.models.attributes`."""
    return with_metadata(messages, filters, MessageAttribute, "message_id")


def write_attributes(messages: Iterable[Message]) -> None:
    """Write the values of new messages' metadata into the table with b-tree indexes."""
    MessageAttribute.objects.bulk_create(
        attribute
        for message in messages
        if message.metadata
        for attribute in attributes_of(MessageAttribute, message.metadata, message_id=message.pk)
    )
