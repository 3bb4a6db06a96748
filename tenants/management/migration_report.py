"""The output of `manage.py migrate`: a line for each schema."""

import time
from collections.abc import Mapping
from typing import Any

from django.core.management.base import OutputWrapper

from tenants.schemas.migrating import MigrationResult


class Report:
    """Counts the results of schemas, and prints each."""

    def __init__(
        self,
        stdout: OutputWrapper,
        stderr: OutputWrapper,
        *,
        slugs: Mapping[str, str],
        options: Mapping[str, Any],
    ) -> None:
        """Begin a report.

        Args:
            stdout: for results.
            stderr: for errors.
            slugs: the slugs of the tenants, by schema name.
            options: options of the command: `verbosity`, `plan` and `check_unapplied` change the
                report.
        """
        self._stdout, self._stderr = stdout, stderr
        self._slugs = slugs
        self._verbosity: int = options["verbosity"]
        self._options = options
        self._began = time.monotonic()
        self.outcomes: dict[str, MigrationResult] = {}

    def add(self, outcome: MigrationResult) -> None:
        """Print one more result, with the estimated remaining time."""
        self.outcomes[outcome.schema_name] = outcome
        width = max(map(len, self._slugs.values()), default=0)
        done, total = len(self.outcomes), len(self._slugs)
        progress = f"[{done:>{len(str(total))}}/{total}] "
        left = (time.monotonic() - self._began) / done * (total - done)
        self.write_schema(
            outcome,
            f"{progress}{self._slugs[outcome.schema_name]:<{width}}",
            f"  (about {left:.0f} s left)" if left >= 1 else "",
        )

    def failed(self) -> dict[str, MigrationResult]:
        """Return the failed results by slug, sorted."""
        failed = {
            self._slugs[name]: outcome for name, outcome in self.outcomes.items() if outcome.error
        }
        return dict(sorted(failed.items()))

    def write_schema(self, outcome: MigrationResult, name: str, remark: str = "") -> None:
        """Write the result of a schema in a line that begins with its name."""
        seconds = f"{outcome.seconds:.2f} s"
        if outcome.busy and self._verbosity:
            self._stdout.write(f"{name}  another process is at it")
        elif outcome.error:
            self._stderr.write(f"{name}  FAILED  {seconds}  {outcome.error}")
        elif self._verbosity:
            what = f"{outcome.applied} applied" if outcome.applied else "up to date"
            if self._options.get("plan"):
                what = "plan"
            elif self._options.get("check_unapplied"):
                what = "not up to date" if outcome.unapplied else "up to date"
            if outcome.protected:
                what += f", protected {', '.join(outcome.protected)}"
            self._stdout.write(f"{name}  {what}  {seconds}{remark}")
        if outcome.details and (self._verbosity > 1 or self._options.get("plan")):
            self._stdout.write(outcome.details)
