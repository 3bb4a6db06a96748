"""Check that work is linear in the length of a text: run attacks in a child process.

The check uses CPU time instead of a clock. An attack first runs on short texts, where quadratic
work costs milliseconds at most. If it takes more than its share of CPU time, it runs on a long
text, where quadratic work takes minutes or hours of CPU time and linear work less than a second.
The kernel ends a process that takes more CPU time than `LIMIT`. A paused virtual machine also
counts as CPU time of the running process, so an attack fails only after `TRIES` ended processes.
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

Attack = Callable[[int], object]


def run_child(module: str) -> None:
    """Run attacks of a module in a child. Fail with the name of the one that took too long."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def attack_all(attacks: Iterable[tuple[str, Attack]]) -> int:
    """Run each attack in the child. An attack is a name and a function of a length."""
    count = 0
    for name, attack in attacks:
        count += 1
        attack(8)  # code that is loaded or cached at first use
        # With eight times the text, linear work takes 8 times as long, quadratic work 64 times.
        if not (_is_suspicious(attack) and _is_suspicious(attack)):
            continue
        _run_long(name, attack)
    return count


def _run_long(name: str, attack: Attack) -> None:
    """Run an attack on a long text. Exit with its name if every try takes more than the limit."""
    for _ in range(TRIES):
        code = _run_forked(attack)
        if code == 0:
            return
        if code != -signal.SIGXCPU:
            sys.exit(f"{name}: exit code {code}")
    sys.exit(f"the work of {name} grows faster than its text: {LIMIT} s of CPU time, {TRIES} times")


def _run_forked(attack: Attack) -> int:
    """Run an attack in a fork of this process. Return the exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, resource.RLIM_INFINITY))
            attack(LONG)
            os._exit(0)
        except BaseException:  # after any error, no code of the parent runs in the fork
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
