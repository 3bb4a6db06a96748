"""Measure the cost of the index of postings by word, `posting_word`, for writing messages.

    python -m benchmarks.writing.word_index [--messages 400] [--rounds 10] [--stored 20000]

Two tenants of one Postgres have the same postings; one of them is without the index. The product's
`accept` and `drain` write the same messages in both, in turns, batch after batch. The script prints
the ratios with the index to without it, for seconds and for the CPU time of Postgres' session, and
the size of the index.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from typing import Any
from uuid import UUID

from benchmarks.replies.pipeline import sentence
from benchmarks.tools.throwaway import set_up, throwaway_tenant

# Words of the stored messages: 30 each, of 20,000.
STORED = """
INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight)
SELECT 1000000 + mod(n, 500), hashtextextended(mod(n * 31 + word * word, 20000)::text, 0), n, 1
FROM generate_series(-{stored}, -1) AS n, generate_series(1, 30) AS word
ON CONFLICT DO NOTHING
"""


def prepare(tenant_id: UUID, stored: int, has_index: bool) -> None:
    """Store postings as the owner, which may drop the index."""
    from django.db import connection

    from tenants.context import tenant_scope

    with tenant_scope(tenant_id), connection.cursor() as cursor:
        if not has_index:
            cursor.execute("DROP INDEX posting_word")
        cursor.execute(STORED.format(stored=stored))
        cursor.execute("ANALYZE memory_posting")


class Writer:
    """Accepts and embeds messages in a tenant."""

    def __init__(self, tenant_id: UUID) -> None:
        from konstruct.orchestrator.agents import create_agent

        self.tenant_id = tenant_id
        self.agent_id = create_agent(tenant_id=tenant_id, name="ada").pk
        self.taken: dict[str, list[float]] = {
            name: [] for name in ("accept", "embed", "both", "Postgres")
        }

    def write(self, texts: list[str]) -> None:
        """Write messages, and record the seconds of each step."""
        from konstruct.orchestrator.pipeline.accept import Incoming, accept
        from memory import indexing

        before = self._cpu_of_postgres()
        began = time.perf_counter()
        for number, text in enumerate(texts):
            user = f"user{number % 20}"
            accept(Incoming(self.agent_id, user, user, "rest", text), tenant_id=self.tenant_id)
        accepted = time.perf_counter()
        # Ends: each run removes jobs, and none are added.
        while indexing.drain(self.tenant_id).more:
            pass
        self.taken["accept"].append(accepted - began)
        done = time.perf_counter()
        self.taken["embed"].append(done - accepted)
        self.taken["both"].append(done - began)
        self.taken["Postgres"].append(self._cpu_of_postgres() - before)

    def _cpu_of_postgres(self) -> float:
        import psutil

        from tenants.context import fetch_value, tenant_scope

        with tenant_scope(self.tenant_id):
            session = psutil.Process(fetch_value("SELECT pg_backend_pid()"))
        return float(sum(session.cpu_times()[:2]))


def size_of_index(tenant_id: UUID) -> tuple[int, int]:
    """Return the bytes of the index and of the table with all of its indexes."""
    from tenants.context import fetch_row, tenant_scope

    with tenant_scope(tenant_id):
        row: Any = fetch_row(
            "SELECT pg_relation_size('posting_word'), pg_total_relation_size('memory_posting')"
        )
    return row[0], row[1]


def main() -> None:
    """Write in both tenants in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=400, help="of a batch")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--stored", type=int, default=20_000, help="messages that are there before")
    parser.add_argument("--prepare", type=UUID, help=argparse.SUPPRESS)
    parser.add_argument("--without", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_up()
    if options.prepare:
        prepare(options.prepare, options.stored, not options.without)
        return
    with throwaway_tenant() as having, throwaway_tenant() as lacking:
        for tenant_id, more in ((having, []), (lacking, ["--without"])):
            command = [sys.executable, "-m", "benchmarks.writing.word_index", "--prepare"]
            subprocess.run(
                [*command, str(tenant_id), "--stored", str(options.stored), *more],
                env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
                check=True,
            )
        writers = [Writer(having), Writer(lacking)]
        chance = random.Random(1)
        for number in range(options.rounds + 1):
            texts = [sentence(chance) for _ in range(options.messages)]
            for writer in writers if number % 2 else reversed(writers):
                writer.write(texts)
        report(*writers)
        index, table = size_of_index(having)
        print(f"the index has {index / 1e6:.1f} MB, postings with all indexes {table / 1e6:.1f} MB")


def report(having: Writer, lacking: Writer) -> None:
    """Print the medians, and the ratios of pairs; the first round is not counted."""
    for name in having.taken:
        both = [writer.taken[name][1:] for writer in (having, lacking)]
        ratios = [one / other for one, other in zip(*both, strict=True)]
        with_index, without = (statistics.median(times) for times in both)
        print(
            f"{name:16} with {with_index:.2f} s, without {without:.2f} s, ratio"
            f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
