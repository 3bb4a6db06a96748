"""Run a command that the kernel kills with its parent: python -m konstruct.local.die_with_parent.

Processes of a supervisor do not outlive it as orphans when it is killed.
With --migrated the command is begun once `manage.py serve` has migrated, and leaves the cores to
those who are waited for until then.
"""

import os
import sys
from signal import Signals

from konstruct.processes import bind_to_parent, wait_for_migrations

if __name__ == "__main__":
    # Process 1 is no supervisor here: it adopted us, and the parent is gone already.
    parent = os.getppid()
    bind_to_parent(Signals.SIGKILL, -1 if parent == 1 else parent)
    command = sys.argv[1:]
    if command[0] == "--migrated":
        command = command[1:]
        wait_for_migrations()
    os.execvp(command[0], command)  # noqa: S606 (the caller's command is the purpose)
