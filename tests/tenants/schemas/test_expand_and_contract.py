"""Processes of the version before go on while tenants are migrated: what migrations take away."""

import re

from tenants.schemas.recording import recording
from tests import database

# What takes from processes that run something they know, or makes them wait while a table is
# written anew. A longer varchar is neither.
CONTRACTS = re.compile(
    r"DROP (TABLE|COLUMN|VIEW)|RENAME (COLUMN|TO)|GENERATED ALWAYS AS"
    r"|ALTER COLUMN \S+ (TYPE (?!varchar)|SET NOT NULL|DROP DEFAULT)"
)
# Migrations that do so to a table that stood before, and what it means meanwhile. A new one has to
# say so here, and in docs/operations.md.
KNOWN = {
    "contenttypes.0002_remove_content_type_name": "Django's; no version of ours knew the column",
}


def test_removals_of_migrations_are_declared(transactional_db: None) -> None:
    with database.as_owner():
        made = recording()
    found = set()
    for step in made.steps:
        new_tables = re.findall(r'CREATE TABLE "?(\w+)', ";".join(step.sql))
        for sql in step.sql:
            is_of_new_table = any(re.search(rf'"?\b{table}\b"?', sql) for table in new_tables)
            if CONTRACTS.search(sql) and not is_of_new_table:
                found.add(f"{step.app}.{step.name}")
    assert found == KNOWN.keys()
