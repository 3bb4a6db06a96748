"""Advisory file locks, which the kernel frees when their last holder dies, however it dies.

A lock is an open file: it passes to forked children (so they count as holders too) and is not
inherited by programs that are executed.
"""

import fcntl
import os
from pathlib import Path


def try_lock(path: Path, *, shared: bool) -> int | None:
    """Lock the file, made if missing; its descriptor, or None when another lock is in the way."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not is_file(descriptor, path):  # removed between the two calls: that lock guards nothing
        os.close(descriptor)
        return None
    return descriptor


def is_file(descriptor: int, path: Path) -> bool:
    """Whether the descriptor is open and is still the file of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def is_locked(path: Path) -> bool:
    """Whether somebody holds an exclusive lock on the file."""
    if not path.exists():
        return False
    descriptor = try_lock(path, shared=True)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
