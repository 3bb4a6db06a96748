"""Measure the memory of each process of `make demo`, when idle and after many replies.

    python -m benchmarks.deployment.process_memory [--replies 1000]

The script starts the demo in a temporary home. Four users send messages and wait for the replies.
`rss` counts shared pages in each process, `pss` divides them.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from benchmarks.serving.rest import LIMITS
from benchmarks.tools.throwaway import PROJECT

USERS = 4
SETTLED_SECONDS = 5.0
KINDS = {"gunicorn": "web", "owner_worker": "owner", " beat ": "beat", " worker ": "worker"}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replies", type=int, default=1000)
    parser.add_argument("--port", type=int, default=8766)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        demo = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(options.port)],
            cwd=PROJECT,
            env={**os.environ, **LIMITS, "KONSTRUCT_HOME": home},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert demo.stdout
            if not any("runs until Ctrl-C" in line for line in demo.stdout):
                sys.exit("the demo has ended; what it says stands above")
            report("at rest", demo.pid)
            key = next(iter(json.loads((Path(home) / "demo_keys.json").read_text()).values()))
            send(options.port, key, options.replies)
            report(f"after {options.replies} replies", demo.pid)
        finally:
            demo.terminate()
            demo.wait()


def send(port: int, key: str, replies: int) -> None:
    """Send messages of several users, and wait for the replies."""
    numbers = itertools.count()

    def talk(user: int) -> None:
        with httpx.Client(
            base_url=f"http://localhost:{port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=120,
        ) as client:
            while (number := next(numbers)) < replies:
                text = f"On day {number} I went {number % 17} miles to the market of Porto."
                body = {"agent": "Iris", "user_id": f"user-{user}", "content": text}
                client.post("/api/v1/messages/?wait=60", json=body).raise_for_status()

    with ThreadPoolExecutor(USERS) as users:
        list(users.map(talk, range(USERS)))


def report(when: str, demo: int) -> None:
    """Print the memory of each process when no job is running."""
    time.sleep(SETTLED_SECONDS)
    print(f"\n{when:28}{'rss MB':>8}{'pss MB':>8}")
    for process in psutil.Process(demo).children(recursive=True):
        command = " ".join(process.cmdline()) + " "
        kind = next((kind for word, kind in KINDS.items() if word in command), None)
        if kind is not None:
            held = process.memory_full_info()
            print(f"  {kind:26}{held.rss / 2**20:8.0f}{held.pss / 2**20:8.0f}", flush=True)


if __name__ == "__main__":
    main()
