"""What migrate would do, told for all tenants at once."""

from collections import defaultdict
from collections.abc import Iterable

from django.db import ProgrammingError

from tenants.context import server_scope, tenant_connection
from tenants.naming import tenant_id_of
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.recording import Recording, Step
from tenants.schemas.replaying import lacking_steps
from tenants.servers import MAIN, server_of

Plan = tuple[Step, ...]


def plans_of(recording: Recording, schema_names: Iterable[str]) -> dict[Plan | None, list[str]]:
    """The schemas by what they lack; under None those that are not there, or their server."""
    found: dict[Plan | None, list[str]] = defaultdict(list)
    for schema_name in schema_names:
        tenant_id = tenant_id_of(schema_name)
        with server_scope(MAIN if tenant_id is None else server_of(tenant_id)):
            tenant_connection().set_schema(schema_name)
            try:
                lacking = lacking_steps(recording, schema_name)
                found[tuple(lacking)].append(schema_name)
            except (ProgrammingError, ServerDown):
                found[None].append(schema_name)
    return found
