"""Run a command that the kernel kills with its parent: python -m konstruct.local.die_with_parent.

Processes of a killed supervisor do not stay as orphans. With --migrated the command starts after
`manage.py serve` has migrated, and leaves the cores to other processes until then.
"""

import os
import sys
from signal import Signals

from konstruct.processes import bind_to_parent, wait_for_migrations

if __name__ == "__main__":
    # Process 1 is no supervisor here: it adopts processes whose parent has ended.
    parent = os.getppid()
    bind_to_parent(Signals.SIGKILL, -1 if parent == 1 else parent)
    command = sys.argv[1:]
    if command[0] == "--migrated":
        command = command[1:]
        wait_for_migrations()
    os.execvp(command[0], command)  # noqa: S606 (the caller's command is the purpose)
