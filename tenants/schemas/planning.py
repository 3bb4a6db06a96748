"""What migrate would do, told for all tenants at once."""

from collections import defaultdict
from collections.abc import Iterable

from django.db import ProgrammingError

from tenants.context import tenant_connection
from tenants.schemas.recording import Recording, Step
from tenants.schemas.replaying import lacking_steps

Plan = tuple[Step, ...]


def plans_of(recording: Recording, schema_names: Iterable[str]) -> dict[Plan | None, list[str]]:
    """The schemas by what they lack; under None those that are not there."""
    found: dict[Plan | None, list[str]] = defaultdict(list)
    connection = tenant_connection()
    for schema_name in schema_names:
        connection.set_schema(schema_name)
        try:
            lacking = lacking_steps(recording, schema_name)
            found[tuple(lacking)].append(schema_name)
        except ProgrammingError:
            found[None].append(schema_name)
    connection.set_schema_to_public()
    return found
