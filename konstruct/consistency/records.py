"""What the ledger says. Pure."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that is not as it should be."""

    kind: str
    """What is wrong, the same words for all of its kind."""
    subject: str
    """The id of what it is wrong with."""
    detail: str = ""


@dataclass(slots=True)
class Ledger:
    """A tenant's books: how much there is of everything, and what does not add up."""

    tenant: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tenant": self.tenant,
            "counts": self.counts,
            "findings": [_named(finding) for finding in self.findings],
            "repaired": [_named(finding) for finding in self.repaired],
        }


def _named(finding: Finding) -> dict[str, str]:
    return {"kind": finding.kind, "subject": finding.subject, "detail": finding.detail}
