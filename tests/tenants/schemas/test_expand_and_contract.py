"""Migrations that remove what processes of the previous version use."""

import re

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

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


def test_removals_of_migrations_are_declared(db: None) -> None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(), clean_start=True)
    found = set()
    for migration, _ in plan:
        statements = executor.loader.collect_sql([(migration, False)])
        new_tables = re.findall(r'CREATE TABLE (?:"?\w+"?\.)?"?(\w+)', "\n".join(statements))
        for statement in statements:
            is_of_new_table = any(re.search(rf'"?\b{name}\b"?', statement) for name in new_tables)
            if CONTRACTS.search(statement) and not is_of_new_table:
                found.add(f"{migration.app_label}.{migration.name}")
    assert found == KNOWN.keys()
