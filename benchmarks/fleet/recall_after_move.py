"""Compare recall of dialogues before and after a move of their tenant to another server.

    python -m benchmarks.fleet.recall_after_move --data locomo10.json

The dialogues are imported by the product. Every question is asked about its own dialogue on both
servers, with each strategy. R@10 is the share of the evidence among the first ten, without the
gate.
"""

import argparse
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from benchmarks.fleet.moving import give_memory_for_indexes, second_server
from benchmarks.recall.quality import Scope, embed_questions, import_dialogues, quality
from benchmarks.recall.scale import read_by
from benchmarks.tools.locomo import Question, read_dialogues
from benchmarks.tools.throwaway import manage, set_up, throwaway_tenant

# Questions with what recall returned, by strategy.
Found = dict[str, list[tuple[Question, Any]]]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    dialogues = read_dialogues(parser.parse_args().data, None)
    with second_server():
        set_up()
        with throwaway_tenant() as tenant_id:
            from tenants.models import Tenant

            give_memory_for_indexes()
            tenant = Tenant.objects.get(id=tenant_id)
            # The tenant may be on either server.
            there = "eu1" if tenant.server == "default" else "default"
            scopes = [
                Scope(dialogue, uuid4(), f"locomo-{dialogue.number}") for dialogue in dialogues
            ]
            import_dialogues(tenant_id, scopes)
            vectors = embed_questions(scopes)
            before = ask(tenant_id, scopes, vectors)
            manage("move_tenant", tenant.slug, "--to", there)
            tenant.refresh_from_db()
            assert tenant.server == there, tenant.server
            after = ask(tenant_id, scopes, vectors)
    for strategy, found in before.items():
        recalls = [quality(result[strategy])["R@10"] for result in (before, after)]
        pairs = zip(found, after[strategy], strict=True)
        same = sum(_ids(old) == _ids(new) for (_, old), (_, new) in pairs)
        print(
            f"{strategy:>10}: R@10 {recalls[0]:.4f} before, {recalls[1]:.4f} after;"
            f" {same} of {len(found)} questions find the same in the same order"
        )


def ask(tenant_id: UUID, scopes: list[Scope], vectors: dict[str, np.ndarray[Any, Any]]) -> Found:
    """Ask every question about its own dialogue, with each strategy."""
    from memory.recall import recall
    from memory.recall.policy import RecallPolicy
    from memory.recall.queries import Strategy
    from tenants.servers import clear_server_cache

    clear_server_cache()
    policy = RecallPolicy(gate=False, top_k=10)
    found: Found = {}
    for strategy in Strategy:
        with read_by(strategy):
            found[strategy.name] = [
                (question, recall(*of, policy=policy, query_embedding=vectors[question.text]))
                for scope in scopes
                for question in scope.dialogue.questions
                for of in [(tenant_id, scope.agent_id, scope.user_id, question.text)]
            ]
    return found


def _ids(result: Any) -> list[UUID]:
    return [hit.message_id for hit in result.hits]


if __name__ == "__main__":
    main()
