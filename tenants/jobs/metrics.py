"""The metrics of jobs."""

from typing import Final

from tenants.metrics import counter

# Names of the kinds of jobs, which register themselves.
kinds: set[str] = set()
JOBS: Final = counter(
    "konstruct_jobs_total",
    "Jobs that were done, attempts that failed and will be repeated, and jobs that were given up.",
    kind=kinds,
    outcome=("done", "failed", "given_up"),
)


def count(kind: str, outcome: str, number: int = 1) -> None:
    """Count jobs by outcome."""
    JOBS.of(kind=kind, outcome=outcome).inc(number)
