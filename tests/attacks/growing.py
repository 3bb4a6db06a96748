"""Whether work grows with the length of a text or with its square: run attacks in a child process.

No clock decides. An attack is first run on short texts, where the square costs milliseconds at
most. What took more than its share of CPU time is run on a text so long that the square of it takes
minutes or hours of CPU time, and what is linear less than a second. The kernel ends a process that
takes more CPU time than `LIMIT` for it. CPU time is not work alone: when a virtual machine stands
still, the time is accounted to the process that runs. So an attack has failed when `TRIES`
processes were ended.
"""

import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable

LIMIT = 15  # seconds of CPU time
TRIES = 3
SHORT, LONG = 2_000, 300_000
# Of a body, which is read but once for each shape, and where a step may be a thousand bytes.
BODY = 500_000

Attack = Callable[[int], object]


def run_child(module: str, every: int) -> None:
    """Run attacks of a module in a child; fail with the name of the one that took too long.

    Args:
        module: run with `every` as its argument.
        every: run each so many-th of the attacks; 1 for all of them.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, str(every)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def attack_all(attacks: Iterable[tuple[str, Attack]], *, limit: int = LIMIT) -> int:
    """Run each attack, an attack being a name and what to do with a length; in the child."""
    count = 0
    for name, attack in attacks:
        count += 1
        attack(8)  # what is loaded or cached at first use
        # Eight times the text: 8 for what is linear, 64 for the square; again, if it may be that.
        if not (_is_suspicious(attack) and _is_suspicious(attack)):
            continue
        run_long(name, attack, LONG, limit=limit)
    return count


def run_long(name: str, attack: Attack, length: int, *, limit: int = LIMIT) -> None:
    """Run an attack on a long text; exit with its name if every try takes more than the limit."""
    for _ in range(TRIES):
        code = _run_forked(attack, length, limit)
        if code == 0:
            return
        if code != -signal.SIGXCPU:
            sys.exit(f"{name}: exit code {code}")
    sys.exit(f"the work of {name} grows faster than its text: {limit} s of CPU time, {TRIES} times")


def _run_forked(attack: Attack, length: int, limit: int) -> int:
    """Run an attack in a fork of this process; return the exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            attack(length)
            os._exit(0)
        except BaseException:  # whatever it is, nothing of the parent is run in the fork
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _is_suspicious(attack: Attack) -> bool:
    short = _cpu(attack, SHORT)
    return short > 0.002 and short > 16 * _cpu(attack, SHORT // 8)


def _cpu(attack: Attack, length: int) -> float:
    before = time.process_time()
    attack(length)
    return time.process_time() - before
