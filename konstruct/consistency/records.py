"""The report of a verification and its findings."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One inconsistency."""

    kind: str
    """The error, in the same words for all of its kind."""
    subject: str
    """The id of the row or key."""
    detail: str = ""


@dataclass(slots=True)
class Report:
    """The counts of a tenant, and the findings."""

    tenant: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a document for JSON."""
        return {
            "tenant": self.tenant,
            "counts": self.counts,
            "findings": [asdict(finding) for finding in self.findings],
            "repaired": [asdict(finding) for finding in self.repaired],
        }
