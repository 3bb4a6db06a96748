"""Create a tenant with many messages, and rows of each table that pages of its admin read.

    python -m benchmarks.serving.large_tenant SLUG [--messages 500000] [--people 5000]

Postgres creates the rows as the owner: a month of messages with 5 agents, half of them replies; for
a part of them vectors, postings, recalls, facts, calls of language models and of tools,
escalations, reviews, deliveries and entries of the access log; and names and accounts of all
people. All vectors are equal. The HNSW index is dropped, because no page uses it. Other indexes,
role and policies are those of the product.
"""

import argparse
import os
import subprocess
import sys
from typing import Final
from uuid import UUID

from benchmarks.tools.throwaway import set_up

AGENTS: Final = 5
_OF = "agent_id, user_id"
_BY = "'person', '1', 'eva'"
FILL: Final = (
    "DROP INDEX IF EXISTS embedding_hnsw",
    # The turns of a thread are {threads} numbers apart, and alternate.
    """INSERT INTO memory_message (id, agent_id, user_id, thread_id, channel, role, content,
                                   in_reply_to_id, created_at)
       SELECT md5('m' || n)::uuid,
              (SELECT array_agg(id ORDER BY name) FROM orchestrator_agent)[1 + mod(n, {agents})],
              'user' || mod(n, {people}), 'thread' || mod(n, {threads}), 'rest',
              CASE WHEN is_reply THEN 'assistant' ELSE 'user' END,
              'Message ' || n || ' is about harbours, lighthouses and night trains.',
              CASE WHEN is_reply THEN md5('m' || n - {threads})::uuid END,
              now() - interval '30 days' * (1 - n::float8 / {messages})
       FROM generate_series(1, {messages}) AS n,
            LATERAL (SELECT mod((n - 1) / {threads}, 2) = 1) AS turn (is_reply)""",
    # All people in one thread, as in a Slack channel.
    """INSERT INTO memory_message (agent_id, user_id, thread_id, channel, role, content, created_at)
       SELECT agent_id, user_id, 'shared', 'slack', 'user', 'Hello all', created_at
       FROM memory_message WHERE mod(number, 100) = 0""",
    f"""INSERT INTO memory_conversationembedding
           ({_OF}, message_id, content, role, embedding, embedding_model, created_at)
       SELECT {_OF}, id, content, role, array_fill(0.05, ARRAY[384])::vector, 'model', created_at
       FROM memory_message WHERE mod(number, 5) = 0""",
    f"""INSERT INTO memory_scope (id, {_OF})
       SELECT row_number() OVER (), {_OF}
       FROM (SELECT DISTINCT {_OF} FROM memory_message) AS known""",
    f"""INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight)
       SELECT scope.id, word.h, message.number, 1
       FROM memory_message AS message JOIN memory_scope AS scope USING ({_OF}),
            LATERAL (VALUES (%(common)s::bigint), (message.number)) AS word (h)
       WHERE mod(message.number, 20) = 0""",
    # With the text of its first source as the query, and no hits.
    f"""INSERT INTO memory_recallevent ({_OF}, reply_id, sources, packed, abstained,
                                       embedding_model, milliseconds, created_at)
       SELECT {_OF}, id, ARRAY[id], '\\x9bcd3c9161c2840993261c61987060c201906d00',
              mod(number, 3) = 0, 'model', 4, created_at
       FROM memory_message WHERE role = 'assistant' AND mod(number, 2) = 0""",
    f"""INSERT INTO memory_memoryentry ({_OF}, content, content_digest, embedding, embedding_model,
                                       state, subject, slot, value, created_at)
       SELECT {_OF}, 'Fact ' || number, sha256(convert_to('Fact ' || number, 'UTF8')),
              array_fill(0.05, ARRAY[384])::vector, 'model',
              CASE WHEN mod(number, 500) = 0 THEN 'proposed' ELSE 'active' END,
              user_id, 'likes', 'trains', created_at
       FROM memory_message WHERE mod(number, 50) = 0""",
    """INSERT INTO memory_factevidence (memory_id, message_id, start, "end", quote, source_digest)
       SELECT fact.memory_id, message.id, 0, 7, 'Message', ''
       FROM memory_memoryentry AS fact
       JOIN memory_message AS message ON fact.content = 'Fact ' || message.number""",
    f"""INSERT INTO memory_factevent (memory_id, action, author_kind, author_id, author_name,
                                     reason, created_at)
       SELECT memory_id, 'enter', {_BY}, '', created_at FROM memory_memoryentry""",
    """INSERT INTO memory_personname (user_id, name, folded)
       SELECT 'user' || n, 'Maria Silva ' || n, 'maria silva ' || n
       FROM generate_series(0, {people} - 1) AS n""",
    """INSERT INTO orchestrator_channelidentity (channel, workspace, native_id, own_id, user_id,
                                                name)
       SELECT 'slack', 'W1', 'U' || n, 'user' || n, 'user' || n, 'Maria ' || n
       FROM generate_series(0, {people} - 1) AS n""",
    f"""INSERT INTO orchestrator_escalation ({_OF}, thread_id, channel, opened_by, reason,
                                            opened_at, resolved_at)
       SELECT {_OF}, 'case' || number, channel, 'user', 'Lost.', created_at,
              CASE WHEN mod(number, 5000) > 0 THEN created_at END
       FROM memory_message WHERE mod(number, 500) = 0""",
    f"""INSERT INTO orchestrator_toolcall ({_OF}, message_id, thread_id, round, position, call_id,
                                          name, arguments, state, created_at, expires_at)
       SELECT {_OF}, id, thread_id, 1, 1, 'c' || number, 'book', '{{{{}}}}',
              CASE WHEN mod(number, 5000) = 0 THEN 'waiting' ELSE 'done' END,
              created_at, created_at + interval '1 hour'
       FROM memory_message WHERE role = 'user' AND mod(number, 20) = 0""",
    f"""INSERT INTO orchestrator_extractioncursor ({_OF}, thread_id)
       SELECT DISTINCT {_OF}, thread_id FROM memory_message WHERE thread_id <> 'shared'""",
    f"""INSERT INTO orchestrator_extractionrun ({_OF}, thread_id, message_ids, state, created_at)
       SELECT {_OF}, thread_id, ARRAY[id], 'applied', created_at
       FROM memory_message WHERE mod(number, 40) = 0""",
    f"""INSERT INTO memory_recallexclusion ({_OF}, message_id, reason, author_kind, author_id,
                                           author_name)
       SELECT {_OF}, id, 'Wrong.', {_BY} FROM memory_message WHERE mod(number, 1000) = 1""",
    f"""INSERT INTO memory_windowclear ({_OF}, last_number)
       SELECT {_OF}, number FROM memory_message WHERE mod(number, 500) = 3""",
    f"""INSERT INTO memory_conversationitem (id, {_OF}, thread_id, item, message_id, created_at)
       SELECT md5('i' || number)::uuid, {_OF}, thread_id, '{{{{}}}}', id, created_at
       FROM memory_message WHERE mod(number, 50) = 4""",
    """INSERT INTO channels_delivery (message_id, channel, address, delivered_at, created_at)
       SELECT id, 'slack', '{{}}', created_at, created_at
       FROM memory_message WHERE role = 'assistant' AND mod(number, 5) = 0""",
    """INSERT INTO tenants_job (kind, key, failed_at, last_error, sweep_at)
       SELECT 'reply', id, now(), 'No answer.', NULL
       FROM memory_message WHERE role = 'user' AND mod(number, 1000) < 2""",
    """INSERT INTO orchestrator_modelcall (agent_id, purpose, model, outcome, created_at)
       SELECT agent_id, 'reply', 'fast', 'done', created_at
       FROM memory_message WHERE mod(number, 2) = 0""",
    """INSERT INTO orchestrator_dailyusage (day, calls)
       SELECT day, 3 FROM generate_series(current_date - 30, current_date, interval '1 day') AS day
       ON CONFLICT (day) DO NOTHING""",
    """INSERT INTO outbox_subscription (target, addresses, types)
       VALUES ('mail', '{{eva@example.com}}', '{{escalation.opened}}')""",
    """INSERT INTO outbox_outboxevent (type, subject_id, agent_id, user_id, thread_id, created_at)
       SELECT 'escalation.opened', id, agent_id, user_id, thread_id, opened_at
       FROM orchestrator_escalation""",
    """INSERT INTO outbox_eventdelivery (subscription_id, event_id, created_at, delivered_at)
       SELECT recipient.id, event.id, event.created_at, event.created_at
       FROM outbox_outboxevent AS event, outbox_subscription AS recipient""",
    """INSERT INTO audit_erasurerequest (user_id, requested_by, done_at, receipt)
       SELECT 'gone' || number, 'eva', now(), '{{}}'
       FROM memory_message WHERE mod(number, 1000) < 2""",
    f"""INSERT INTO audit_messageerasure ({_OF}, thread_id, message_id, requested_by, done_at,
                                         receipt)
       SELECT {_OF}, thread_id, gen_random_uuid(), 'eva', now(), '{{{{}}}}'
       FROM memory_message WHERE mod(number, 1000) < 2""",
    f"""INSERT INTO audit_accessevent
           (actor_kind, actor_id, actor, action, subject, {_OF}, created_at)
       SELECT {_BY}, 'view', 'conversation', {_OF}, created_at
       FROM memory_message WHERE mod(number, 5) = 0""",
)
_TABLES = """
SELECT quote_ident(relname) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""


def fill(tenant_id: UUID, messages: int, people: int) -> None:
    """Create the rows as the owner, which may drop the index."""
    from django.contrib.auth.models import User
    from django.db import connection

    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent, update_agent
    from memory.text.lexical import lexeme_hash, stem
    from tenants.context import tenant_scope

    numbers = {"messages": messages, "people": people, "agents": AGENTS, "threads": 2 * people}
    for number in range(AGENTS):
        create_agent(tenant_id=tenant_id, name=f"agent-{number}", system_prompt="Be kind.")
    issue_key(tenant_id=tenant_id, name="benchmark")
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        from konstruct.orchestrator.models import Agent

        update_agent(Agent.objects.earliest("name"), persona="Curt.")
        User.objects.create_user("invited")
        for statement in FILL:
            cursor.execute(statement.format(**numbers), {"common": lexeme_hash(stem("harbours"))})
        # A plain ANALYZE would lock the tables of all tenants at once.
        cursor.execute(_TABLES)
        for (table,) in cursor.fetchall():
            cursor.execute(f"ANALYZE {table}")


def filled(tenant_id: UUID, messages: int, people: int) -> None:
    """Fill a tenant in a process of the owner."""
    subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.serving.large_tenant", str(tenant_id)),
            *("--messages", str(messages), "--people", str(people)),
        ],
        env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
        check=True,
    )


def main() -> None:
    """Fill a tenant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tenant", type=UUID)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--people", type=int, default=5_000)
    arguments = parser.parse_args()
    set_up()
    fill(arguments.tenant, arguments.messages, arguments.people)


if __name__ == "__main__":
    main()
