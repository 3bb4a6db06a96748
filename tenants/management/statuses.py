"""Exit statuses of `manage.py migrate`, besides 0 (all are migrated) and those of all commands."""

from typing import Final

# Nobody is served by this version: the public schema failed, or every tenant, or another run is on.
NOTHING_DONE: Final = 3
# Some tenants are behind, and named. The others are migrated and can be served.
SOME_BEHIND: Final = 4
