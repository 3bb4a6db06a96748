"""Checks the attributes of facts, and the evidence of extracted facts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Substr

from konstruct.consistency.records import Finding
from memory.facts import SYSTEM, retract
from memory.facts.versions import write_attributes
from memory.models import FactEvidence, FactKind, FactState, MemoryAttribute, MemoryEntry
from memory.models.attributes import Attribute
from memory.models.metadata_filters import metadata_values
from tenants import transaction

DIFFERENT = "attributes of a fact differ from its metadata"
NO_ENTRY = "version of a fact that does not exist"
NO_EVIDENCE = "active extracted fact without evidence"
WRONG_QUOTE = "active extracted fact with a quote that is not in its message"


def count() -> dict[str, int]:
    """Count facts, without their old versions."""
    return {"facts": MemoryEntry.objects.entries().count()}


def check() -> Iterator[Finding]:
    """Recount the attributes of every fact."""
    facts = MemoryEntry.objects.only("memory_id", "metadata").prefetch_related("attributes")
    for fact in facts.iterator(chunk_size=500):
        if attributes_differ(fact.metadata, fact.attributes.all()):
            yield Finding(DIFFERENT, str(fact.pk))
    entries = MemoryEntry.objects.entries().values("memory_id")
    versions = MemoryEntry.objects.filter(version_of__isnull=False)
    for pk in versions.exclude(version_of__in=entries).values_list("pk", flat=True):
        yield Finding(NO_ENTRY, str(pk))
    extracted = MemoryEntry.objects.entries().filter(state=FactState.ACTIVE)
    extracted = extracted.exclude(kind=FactKind.ENTERED)
    for pk in extracted.filter(evidence__isnull=True).values_list("pk", flat=True):
        yield Finding(NO_EVIDENCE, str(pk))
    # Postgres counts characters from 1.
    words = Substr("message__content", F("start") + 1, F("end") - F("start"))
    wrong = FactEvidence.objects.annotate(words=words).exclude(words=F("quote"))
    for pk in extracted.filter(pk__in=wrong.values("memory_id")).values_list("pk", flat=True):
        yield Finding(WRONG_QUOTE, str(pk))


def attributes_differ(metadata: Mapping[str, Any], attributes: Iterable[Attribute]) -> bool:
    """Return whether the attributes differ from those of the metadata."""
    expected = sorted(
        (key, value.kind, value.text or "", value.number or 0.0)
        for key, value in metadata_values(metadata)
    )
    existing = sorted(
        (attribute.key, attribute.kind, attribute.text or "", attribute.number or 0.0)
        for attribute in attributes
    )
    return expected != existing


def rewrite_attributes(findings: Sequence[Finding]) -> None:
    """Write the attributes from the metadata."""
    for fact in MemoryEntry.objects.filter(pk__in=[finding.subject for finding in findings]):
        with transaction.atomic():
            MemoryAttribute.objects.filter(memory=fact).delete()
            write_attributes(fact)


def remove(findings: Sequence[Finding]) -> None:
    """Remove versions without a fact."""
    MemoryEntry.objects.filter(pk__in=[finding.subject for finding in findings]).delete()


def retract_all(findings: Sequence[Finding]) -> None:
    """Retract facts without evidence."""
    for finding in findings:
        retract(UUID(finding.subject), author=SYSTEM, reason=finding.kind)


REPAIRS = {
    DIFFERENT: rewrite_attributes,
    NO_ENTRY: remove,
    NO_EVIDENCE: retract_all,
    WRONG_QUOTE: retract_all,
}
