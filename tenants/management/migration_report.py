"""The output of `manage.py migrate`: lines, a progress bar, or JSON."""

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from django.core.management.base import OutputWrapper

from tenants.schemas.migrating import MigrationResult

BAR_WIDTH: Final = 30


class Progress:
    """A progress bar in one line of a terminal."""

    def __init__(self, stdout: OutputWrapper, total: int) -> None:
        self._stdout = stdout
        self._total = total
        self._began = time.monotonic()

    def show(self, done: int) -> None:
        """Draw the bar."""
        filled = BAR_WIDTH * done // max(self._total, 1)
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        self._stdout.write(
            f"\r\033[K{bar} {done:,}/{self._total:,}  {self.time_left(done)}", ending=""
        )
        self._stdout.flush()

    def clear(self) -> None:
        """Clear the line, so that others can write."""
        self._stdout.write("\r\033[K", ending="")
        self._stdout.flush()

    def time_left(self, done: int) -> str:
        """Return the estimated remaining time; "" if it is below a second."""
        seconds = (time.monotonic() - self._began) / max(done, 1) * (self._total - done)
        if seconds < 1:
            return ""
        return (
            f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"
        )


# With more tenants, a terminal shows a bar instead of lines.
MAX_LINES: Final = 20


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
            options: options of the command: `verbosity`, `json`, `plan` and `check_unapplied`
                change the report.
        """
        self._stdout, self._stderr = stdout, stderr
        self._slugs = slugs
        self._verbosity: int = options["verbosity"]
        self._as_json: bool = options["json"]
        self._options = options
        self._began = time.monotonic()
        self._progress = Progress(stdout, len(slugs))
        is_long = self._verbosity == 1 and len(slugs) > MAX_LINES
        self._has_bar = is_long and not self._as_json and stdout.isatty()
        self.outcomes: dict[str, MigrationResult] = {}

    def add(self, outcome: MigrationResult) -> None:
        """Print one more result."""
        self.outcomes[outcome.schema_name] = outcome
        if self._as_json:
            self._stdout.write(json.dumps(self._document(outcome)))
        elif self._has_bar:
            if outcome.error:
                self._progress.clear()
                self._line(outcome)
            self._progress.show(len(self.outcomes))
        else:
            self._line(outcome)

    def failed(self) -> dict[str, MigrationResult]:
        """Return the failed results by slug, sorted."""
        failed = {
            self._slugs[name]: outcome for name, outcome in self.outcomes.items() if outcome.error
        }
        return dict(sorted(failed.items()))

    def end(self, outcome: str, *, up_to_date: int) -> None:
        """Print the result of the run: a last JSON document, or the end of the bar."""
        if self._has_bar:
            self._stdout.write("")
        if self._as_json:
            failed = self.failed()
            document = {
                "outcome": outcome,
                "up_to_date": up_to_date,
                "migrated": len(self.outcomes) - len(failed),
                "failed": {slug: outcome.error for slug, outcome in failed.items()},
                "left": len(self._slugs) - len(self.outcomes),
                "seconds": round(time.monotonic() - self._began, 2),
            }
            self._stdout.write(json.dumps(document))

    def _document(self, outcome: MigrationResult) -> dict[str, Any]:
        return {
            "tenant": self._slugs[outcome.schema_name],
            "schema": outcome.schema_name,
            "outcome": _outcome_word(outcome),
            "applied": outcome.applied,
            "seconds": round(outcome.seconds, 3),
            "error": outcome.error,
        }

    def _line(self, outcome: MigrationResult) -> None:
        width = max(map(len, self._slugs.values()), default=0)
        done, total = len(self.outcomes), len(self._slugs)
        progress = f"[{done:>{len(str(total))}}/{total}] "
        left = self._progress.time_left(done)
        self.write_schema(
            outcome,
            f"{progress}{self._slugs[outcome.schema_name]:<{width}}",
            f"  ({left})" if left else "",
        )

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


def _outcome_word(outcome: MigrationResult) -> str:
    if outcome.locked:
        return "locked"
    if outcome.busy:
        return "busy"
    if outcome.error:
        return "failed"
    return "migrated" if outcome.applied else "up to date"
