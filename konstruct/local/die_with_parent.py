"""Run a command that the kernel kills with its parent: python -m konstruct.local.die_with_parent.

What a supervisor starts does not go on as nobody's child when the supervisor itself is killed.
"""

import os
import sys
from signal import Signals

from konstruct.processes import bind_to_parent

if __name__ == "__main__":
    # Process 1 is nobody's supervisor here: it adopted us, and the parent is gone already.
    parent = os.getppid()
    bind_to_parent(Signals.SIGKILL, -1 if parent == 1 else parent)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 (the caller's command is the purpose)
