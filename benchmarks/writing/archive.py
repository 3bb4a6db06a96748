"""Time the archive: `python -m benchmarks.writing.archive [--vectors N]`.

The vectors are random unit vectors, because their meaning makes no difference here. The script
shows the median of repeated searches, and the share of the exact result that they found.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from memory.archive import SQLiteManager, VectorStore

BATCH = 10_000
SINGLES = 500
SEARCHES = 20


def per_second(count: int, work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)


def milliseconds(work: Callable[[int], Any]) -> float:
    times = []
    for number in range(SEARCHES):
        begun = time.perf_counter()
        work(number)
        times.append(1000 * (time.perf_counter() - begun))
    return statistics.median(times)


def recall_at_10(
    store: VectorStore, ids: list[str], vectors: np.ndarray[Any, Any], queries: np.ndarray[Any, Any]
) -> float:
    found = 0
    for query in queries:
        exact = {ids[n] for n in np.argpartition(-(vectors @ query), 10)[:10]}
        found += len(exact & {hit.id for hit in store.search(query, 10)})
    return found / (10 * len(queries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    count = max(parser.parse_args().vectors, BATCH)
    random = np.random.default_rng(0)
    vectors = random.standard_normal((count, 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = random.standard_normal((SEARCHES, 384), dtype=np.float32)

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "benchmark.db"
        with SQLiteManager(path) as file, VectorStore(file) as store:
            conversation = file.create_conversation()
            messages = [{"role": "user", "content": f"message {n} " * 10} for n in range(BATCH)]
            rate = per_second(BATCH, lambda: file.add_messages(conversation, messages))
            print(f"messages, in batches of {BATCH:,}      {rate:10,.0f} a second")
            rate = per_second(
                SINGLES,
                lambda: [file.add_message(conversation, "user", "hello") for _ in range(SINGLES)],
            )
            print(f"messages, one by one, each on disk  {rate:10,.0f} a second")
            ids: list[str] = []
            rate = per_second(BATCH, lambda: ids.extend(store.store_batch(vectors[:BATCH])))
            print(f"vectors, in batches of {BATCH:,}       {rate:10,.0f} a second")
            singles: list[str] = []
            rate = per_second(
                SINGLES, lambda: singles.extend(store.store(vectors[n]) for n in range(SINGLES))
            )
            print(f"vectors, one by one, each on disk   {rate:10,.0f} a second")
            for id in singles:
                store.delete(id)
            shown = milliseconds(lambda n: store.search(queries[n], 10))
            print(f"the nearest 10 of {len(ids):>9,}         {shown:10.1f} ms")
            for begin in range(BATCH, count, BATCH):
                ids += store.store_batch(vectors[begin : begin + BATCH])
            shown = milliseconds(lambda n: store.search(queries[n], 10))
            print(f"the nearest 10 of {len(ids):>9,}         {shown:10.1f} ms")
            shown = milliseconds(lambda n: store.search(queries[n], 10, ids=ids[:500]))
            print(f"the nearest 10 of 500 of these      {shown:10.1f} ms")
            recall = recall_at_10(store, ids, vectors, queries)
            print(f"recall@10                           {recall:10.3f}")
        print(f"file                                {path.stat().st_size / 1e6:10,.0f} MB")


if __name__ == "__main__":
    main()
