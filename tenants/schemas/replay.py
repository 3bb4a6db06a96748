"""Brings a schema up to date with the recording, in few messages, each of them a transaction.

Django's executor applies the migrations that cannot be replayed.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from django.contrib.contenttypes.management import inject_rename_contenttypes_operations
from django.db import transaction

from tenants.context import execute, fetch_all, tenant_connection
from tenants.schemas.executor import AtomicExecutor, lock_timeout_statements
from tenants.schemas.recording import Recording, Step, script_for, statements_of

# Called with the name of a migration before it is applied, and with the number applied.
OnBegin = Callable[[str], object]
OnDone = Callable[[int], object]


class Replay:
    """Applies a recording to one schema."""

    def __init__(
        self,
        recording: Recording,
        schema_name: str,
        tenant_id: UUID,
        *,
        begun: OnBegin,
        done: OnDone,
    ) -> None:
        self._recording = recording
        self._schema = schema_name
        self._tenant_id = tenant_id
        self._begun = begun
        self._done = done

    def fill(self) -> None:
        """Create the schema with everything in it, in the caller's transaction."""
        recording = self._recording
        first: Sequence[str] = [f"CREATE SCHEMA {self._schema}", *recording.head]
        for replayed, steps in _runs(recording.steps, empty=True):
            if replayed:
                self._send([*first, *statements_of(steps)], len(steps))
            else:
                self._send(first)
                self._apply_by_django(steps)
            first = []
        self._send([*recording.tail, *recording.protection])

    def upgrade(self, *, last: Callable[[], object]) -> int:
        """Apply the missing migrations.

        Args:
            last: called in the transaction that replays the last migration, if it is replayed.

        Returns:
            The number of migrations.
        """
        lacking = missing_steps(self._recording, self._schema)
        runs = list(_runs(lacking, empty=False))
        for number, (replayed, steps) in enumerate(runs, 1):
            if not replayed:
                self._apply_by_django(steps)
                continue
            with transaction.atomic(using=tenant_connection().alias):
                statements = [*lock_timeout_statements(), "SET CONSTRAINTS ALL IMMEDIATE"]
                self._send([*statements, *statements_of(steps)], len(steps))
                if number == len(runs):
                    last()
        return len(lacking)

    def _send(self, statements: Sequence[str], migrations: int = 0) -> None:
        if statements:
            # A ";" makes one message of it, even of a single statement.
            execute(script_for(self._schema, self._tenant_id, ["", *statements]))
        self._done(migrations)

    def _apply_by_django(self, steps: Iterable[Step]) -> None:
        connection = tenant_connection()
        for step in steps:
            self._begun(f"{step.app}.{step.name}")
            executor = AtomicExecutor(connection)
            plan: list[Any] = [(executor.loader.graph.nodes[step.key], False)]
            inject_rename_contenttypes_operations(plan=plan, using=connection.alias)
            executor.migrate([step.key], plan=plan)
            self._begun("")
            self._done(1)


def missing_steps(recording: Recording, schema_name: str) -> list[Step]:
    """Return the migrations that a schema lacks, in the order of the recording.

    The schema is the current one of the connection.

    Raises:
        ProgrammingError: there is no such schema, or none of ours.
    """
    # Named, for without such a table the public schema's would be read.
    applied = set(fetch_all(f"SELECT app, name FROM {schema_name}.django_migrations"))  # noqa: S608
    return [step for step in recording.steps if step.key not in applied]


def _runs(steps: Iterable[Step], *, empty: bool) -> Iterable[tuple[bool, list[Step]]]:
    """Group consecutive migrations by whether they can be replayed."""
    for replayed, run in groupby(steps, key=lambda step: step.can_be_replayed(empty=empty)):
        yield replayed, list(run)
