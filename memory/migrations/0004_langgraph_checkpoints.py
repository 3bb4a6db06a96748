"""LangGraph's tables, version 9 (langgraph-checkpoint-postgres 3), with tenant, policy and grants.

LangGraph's own setup() builds its indexes concurrently, so outside of a transaction, and knows of
no tenants. These are the same tables, made empty; it finds version 9 and has nothing left to do.
"""

from django.db import migrations

from tenants.operations.policies import AddTenantColumn, ForceRowLevelSecurity, GrantToApp

CREATE = """
CREATE TABLE checkpoint_migrations (v integer PRIMARY KEY);

CREATE TABLE checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Ours: under row-level security no index on an expression of the JSON would be used.
    run_id text GENERATED ALWAYS AS (metadata ->> 'run_id') STORED,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE INDEX checkpoints_thread_id_idx ON checkpoints (thread_id);
CREATE INDEX checkpoints_run_id_idx ON checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);
CREATE INDEX checkpoint_blobs_thread_id_idx ON checkpoint_blobs (thread_id);

CREATE TABLE checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
CREATE INDEX checkpoint_writes_thread_id_idx ON checkpoint_writes (thread_id);
"""
DROP = "DROP TABLE checkpoint_writes, checkpoint_blobs, checkpoints, checkpoint_migrations"

TABLES = {
    "checkpoint_migrations": [],
    "checkpoints": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_blobs": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_writes": ["INSERT", "UPDATE", "DELETE"],
}


def protections():
    for table, privileges in TABLES.items():
        yield AddTenantColumn(table)
        yield ForceRowLevelSecurity(table)
        if privileges:
            yield GrantToApp(table, *privileges)


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_facts")]

    operations = [
        migrations.RunSQL(CREATE, DROP),
        *protections(),
        migrations.RunSQL(
            "INSERT INTO checkpoint_migrations (v) SELECT generate_series(0, 9)",
            migrations.RunSQL.noop,
        ),
    ]
