"""The SQL script that creates the schema of a new tenant, with its tables and first rows.

`manage.py make_schema_script` writes it from a schema that Django has migrated. Its first line has
a digest of the migrations of these apps. A script of other migrations is not used: Django migrates
the schema of a new tenant then, which takes seconds. Django also runs the migrations of further
apps, after the script.
"""

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final
from uuid import UUID

from tenants import operations
from tenants.schemas.migration_state import digest_of, known_migrations, migration_folders

FILE: Final = Path(__file__).with_name("new_schema.sql")
# In the script, for the name of the schema and the id of its tenant.
SCHEMA: Final = "__schema__"
TENANT: Final = "__tenant__"


def first_line(labels: Iterable[str]) -> str:
    """Return the first line of a script of these apps, with a digest of their migrations.

    The operations of Konstruct's migrations are part of it.
    """
    folders = migration_folders()
    digest = blake2b(digest_size=16)
    for label in sorted(labels):
        for path in sorted(folders[label].glob("*.py")):
            digest.update(f"{label}/{path.name}\0".encode() + path.read_bytes())
    for path in sorted(Path(operations.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return " ".join(["--", digest.hexdigest(), *sorted(labels)])


@cache
def get_script() -> str:
    """Return the script with its placeholders; "" if it was made from other migrations."""
    head, _, script = FILE.read_text().partition("\n")
    labels = head.split()[2:]
    is_known = migration_folders().keys() >= set(labels)
    return script if is_known and head == first_line(labels) else ""


def script_for(schema_name: str, tenant_id: UUID) -> str:
    """Return the script for the schema of a tenant."""
    return get_script().replace(SCHEMA, schema_name).replace(TENANT, str(tenant_id))


def current_state() -> str:
    """Return the value of `Tenant.migrated_to` for a schema that is up to date.

    It changes with the script, because `migrate` also brings permissions, roles and policies of
    existing tenants up to date.
    """
    return digest_of([*sorted(known_migrations()), get_script()])
