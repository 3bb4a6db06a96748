"""LangGraph's tables, version 9 (langgraph-checkpoint-postgres 3), with tenant, policy and grants.

LangGraph's own setup() builds its indexes concurrently, so outside of a transaction, and knows of
no tenants. These are the same tables, made empty; it finds version 9 and has nothing left to do. Its
indexes on `thread_id` are left out, because the primary keys begin with the thread.
"""

from django.db import migrations

from tenants.operations.policies import AddTenantColumn, protect_tables

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
"""
DROP = "DROP TABLE checkpoint_writes, checkpoint_blobs, checkpoints, checkpoint_migrations"

PRIVILEGES = {
    "checkpoint_migrations": [],
    "checkpoints": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_blobs": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_writes": ["INSERT", "UPDATE", "DELETE"],
}


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.RunSQL(CREATE, DROP),
        *(AddTenantColumn(table) for table in PRIVILEGES),
        *protect_tables(PRIVILEGES),
        migrations.RunSQL(
            "INSERT INTO checkpoint_migrations (v) SELECT generate_series(0, 9)",
            migrations.RunSQL.noop,
        ),
    ]
