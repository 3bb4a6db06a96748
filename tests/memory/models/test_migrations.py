"""The tables in Postgres: as in the contract, migrated up and down again."""

import pytest
from django.apps import apps
from django.db.migrations.executor import MigrationExecutor

from memory.models import ConversationEmbedding
from tenants.context import connection, tenant_scope
from tests.database import as_owner, execute


def tables(schema):
    return {
        name
        for (name,) in execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE 'memory%%'",
            schema,
        )
    }


def test_the_columns_of_conversation_embedding(inside):
    columns = {
        name: (kind, required, default)
        for name, kind, required, default in execute(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull,"
            " pg_get_expr(adbin, adrelid) FROM pg_attribute"
            " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
            " WHERE attrelid = %s::regclass AND attnum > 0",
            f"{inside.schema_name}.memory_conversationembedding",
        )
    }
    assert columns["id"] == ("uuid", True, "gen_random_uuid()")
    assert columns["tenant_id"][:2] == columns["agent_id"][:2] == ("uuid", True)
    assert columns["user_id"] == columns["content"] == columns["role"] == ("text", True, None)
    assert columns["embedding"][0].removeprefix("extensions.") == "vector(384)"
    assert columns["embedding"][1:] == (True, None)
    assert columns["created_at"] == ("timestamp with time zone", True, "now()")


def test_the_indexes_of_conversation_embedding(inside):
    indexes = dict(
        execute(
            "SELECT indexname, split_part(indexdef, ' USING ', 2) FROM pg_indexes"
            " WHERE schemaname = %s AND tablename = 'memory_conversationembedding'",
            inside.schema_name,
        )
    )
    assert indexes["embedding_hnsw"].replace("extensions.", "") == (
        "hnsw (embedding vector_cosine_ops) WITH (m='16', ef_construction='64')"
    )
    assert indexes["embedding_scope"] == (
        "btree (tenant_id, agent_id, user_id, created_at DESC) INCLUDE (embedding_model)"
    )
    assert indexes["embedding_quantized"] == (
        "btree (tenant_id, agent_id, user_id, embedding_model) INCLUDE (id, quantized)"
        " WHERE (message_id IS NOT NULL)"
    )


def test_vectors_are_stored_inside_their_rows(inside):
    assert execute(
        "SELECT attstorage FROM pg_attribute"
        " WHERE attname = 'embedding' AND attrelid = %s::regclass",
        f"{inside.schema_name}.memory_conversationembedding",
    ) == [("p",)]


@pytest.mark.parametrize(
    "table", ["memory_conversationembedding", "memory_indexedmessage", "memory_posting"]
)
def test_tables_of_index_only_scans_are_vacuumed_early(inside, table):
    assert execute(
        "SELECT reloptions FROM pg_class WHERE oid = %s::regclass",
        f"{inside.schema_name}.{table}",
    ) == [(["autovacuum_vacuum_insert_scale_factor=0.05"],)]


def test_a_search_for_words_reads_the_index_alone(inside):
    ((definition,),) = execute(
        "SELECT pg_get_indexdef(%s::regclass)", f"{inside.schema_name}.memory_posting_pkey"
    )
    assert definition.endswith(
        "(scope_id, lexeme_hash, message_number) INCLUDE (weight, tenant_id)"
    )


def test_every_table_forces_its_policy(inside):
    """Includes tables that are added later."""
    expected = {model._meta.db_table for model in apps.get_app_config("memory").get_models()}
    forced = execute(
        "SELECT relname FROM pg_class JOIN pg_policy ON polrelid = pg_class.oid"
        " WHERE relnamespace = %s::regnamespace AND relrowsecurity AND relforcerowsecurity"
        " AND relname = ANY (%s) AND polcmd = '*' AND polqual IS NOT NULL"
        " AND polwithcheck IS NOT NULL",
        inside.schema_name,
        sorted(expected),
    )
    assert {name for (name,) in forced} == expected == tables(inside.schema_name)


def test_roles_and_vectors_are_checked_by_postgres_too(inside):
    constraints = {
        name
        for (name,) in execute(
            "SELECT conname FROM pg_constraint WHERE connamespace = %s::regnamespace",
            inside.schema_name,
        )
    }
    assert {"message_role", "embedding_role"} <= constraints


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_downgrade_drops_the_tables_and_leaves_the_extension(make_tenant):
    tenant = make_tenant()
    before = tables(tenant.schema_name)
    with as_owner(), tenant_scope(tenant.id):
        newest = list(MigrationExecutor(connection).loader.graph.leaf_nodes())
        MigrationExecutor(connection).migrate([("memory", None)])
        assert tables(tenant.schema_name) == set()
        assert execute("SELECT extname FROM pg_extension WHERE extname = 'vector'") == [("vector",)]
        MigrationExecutor(connection).migrate(newest)
    assert tables(tenant.schema_name) == before
    with tenant_scope(tenant.id):
        row = ConversationEmbedding.objects.create(
            agent_id=tenant.id, user_id="u", content="x", role="user", embedding=[1.0] * 384
        )
        assert list(ConversationEmbedding.objects.values_list("pk", flat=True)) == [row.pk]
