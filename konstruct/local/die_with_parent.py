"""Run a command that the kernel kills with its parent: python -m konstruct.local.die_with_parent.

Processes of a killed supervisor do not stay as orphans.
"""

import os
import sys
from signal import Signals

from konstruct.processes import bind_to_parent

if __name__ == "__main__":
    # Process 1 is no supervisor here: it adopts processes whose parent has ended.
    parent = os.getppid()
    bind_to_parent(Signals.SIGKILL, -1 if parent == 1 else parent)
    command = sys.argv[1:]
    os.execvp(command[0], command)  # noqa: S606 (the caller's command is the purpose)
