"""The part of indexing.py for one version: a process that writes messages as the outbox does.

It runs the code of its working directory, so it uses only names that all versions have. Each input
line is a request, and each answer is a line that begins with "answer".
"""

import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

# This script runs in the folder of another version, and is started by its path.
sys.path[0] = str(Path(__file__).resolve().parents[1] / "tools")
from of_version import first_of, use_version_in  # type: ignore[import-not-found] # noqa: E402

use_version_in(Path.cwd())
throwaway = first_of("benchmarks.tools.throwaway", "throwaway")

AGENT = UUID("00000000-0000-4000-8000-000000000001")
SIZES = """
    SELECT t.relname || CASE WHEN c.oid = t.oid THEN '' ELSE ' ' || c.relname END,
           pg_relation_size(c.oid) + coalesce(pg_total_relation_size(
               CASE WHEN c.oid = t.oid THEN nullif(c.reltoastrelid, 0) END), 0)
    FROM pg_class AS t
    JOIN pg_namespace AS n ON n.oid = t.relnamespace
    JOIN pg_class AS c ON c.oid = t.oid
                       OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = t.oid)
    WHERE n.nspname = current_schema() AND t.relname LIKE 'memory\\_%' AND t.relkind = 'r'
"""


def main() -> None:
    """Answer requests until the input ends."""
    throwaway.set_up()
    import psutil
    from django.db import connection

    from tenants.context import tenant_scope

    transcript = first_of("memory.conversations.transcript", "memory.transcript")
    outbox = first_of("memory.indexing.embedding_jobs", "memory.indexing", "memory.outbox")
    first_of("memory.embedding.embedder", "memory.embeddings").get_embedder()
    written = 0
    with throwaway.throwaway_tenant() as tenant_id, tenant_scope(tenant_id):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            backend = psutil.Process(cursor.fetchone()[0])
        for line in sys.stdin:
            request = json.loads(line)
            if "write" in request:
                for message in request["write"]:
                    written += 1
                    transcript.record_message(
                        tenant_id=tenant_id,
                        agent_id=AGENT,
                        channel="import",
                        external_id=str(uuid5(AGENT, str(written))),
                        **{**message, "created_at": datetime.fromisoformat(message["created_at"])},
                    )
                answer = timed(lambda: drain(outbox, tenant_id), backend)
            else:
                with connection.cursor() as cursor:
                    cursor.execute(SIZES)
                    answer = {name: size / written for name, size in cursor.fetchall() if size}
            print("answer", json.dumps(answer), flush=True)


def drain(outbox: Any, tenant_id: UUID) -> None:
    """Embed and index all waiting messages."""
    while outbox.drain(tenant_id).more:
        pass


def timed(work: Any, backend: Any) -> dict[str, float]:
    """Return the seconds of the work, and CPU seconds of this process and of a session."""
    started, cpu, session_cpu = (
        time.perf_counter(),
        time.process_time(),
        sum(backend.cpu_times()[:2]),
    )
    work()
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "postgres_cpu": sum(backend.cpu_times()[:2]) - session_cpu,
    }


if __name__ == "__main__":
    main()
