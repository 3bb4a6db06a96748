"""Which operator runs a command."""

import getpass
import os


def operator_name() -> str:
    """Return the account that runs this process, as the machine calls it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's number without a name
        return f"uid {os.getuid()}"
