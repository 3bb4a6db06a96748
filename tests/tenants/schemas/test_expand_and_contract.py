"""Migrations that remove what processes of the previous version use."""

import re

from tenants.schemas.recording import get_recording
from tests import database

# Operations that remove something that running processes use, or that lock a table while it is
# rewritten. A longer varchar does neither.
CONTRACTS = re.compile(
    r"DROP (TABLE|COLUMN|VIEW)|RENAME (COLUMN|TO)|GENERATED ALWAYS AS"
    r"|ALTER COLUMN \S+ (TYPE (?!varchar)|SET NOT NULL|DROP DEFAULT)"
)
# Migrations with such an operation on an existing table, and its effect. A new one must be added
# here, and to docs/operations.md.
KNOWN = {
    "contenttypes.0002_remove_content_type_name": "Django's; no version of ours knew the column",
}


def test_removals_of_migrations_are_declared(transactional_db: None) -> None:
    with database.as_owner():
        made = get_recording()
    found = set()
    for step in made.steps:
        new_tables = re.findall(r'CREATE TABLE "?(\w+)', ";".join(step.sql))
        for sql in step.sql:
            is_of_new_table = any(re.search(rf'"?\b{table}\b"?', sql) for table in new_tables)
            if CONTRACTS.search(sql) and not is_of_new_table:
                found.add(f"{step.app}.{step.name}")
    assert found == KNOWN.keys()
