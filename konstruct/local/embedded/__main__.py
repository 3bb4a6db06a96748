"""`python -m konstruct.local.embedded`: stop the services, run a tool on them, supervise one."""

import os
import subprocess
import sys

from konstruct.local.embedded.errors import EmbeddedError
from konstruct.local.embedded.paths import DATABASE, ROLES, password_file, socket_directory
from konstruct.local.embedded.postgres import SETTINGS, binaries
from konstruct.local.embedded.supervisor import detach, supervise
from konstruct.local.embedded.users import SERVICES, ensure_postgres, stop

USAGE = """usage: python -m konstruct.local.embedded stop
       python -m konstruct.local.embedded tool (psql | pg_dump | pg_restore | …) [arguments]"""


def run_tool(name: str, arguments: list[str]) -> int:
    """Run one of Postgres' programs as the superuser on the embedded database; its exit status."""
    tool = binaries() / name
    if not tool.exists():
        sys.exit(f"konstruct.local.embedded: there is no {name}; there are {_names_of_tools()}")
    ensure_postgres()
    connection = {
        "PGHOST": str(socket_directory()),
        "PGPORT": SETTINGS["port"],
        "PGUSER": ROLES["superuser"],
        "PGPASSFILE": str(password_file("superuser")),
        "PGDATABASE": DATABASE,
    }
    # Not executed in our place: that would end our being a user, and with the last user, Postgres.
    return subprocess.run([tool, *arguments], env={**os.environ, **connection}).returncode


def _names_of_tools() -> str:
    return ", ".join(sorted(path.name for path in binaries().iterdir()))


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case ["supervise", name] if name in SERVICES:
                detach()
                sys.exit(supervise(SERVICES[name]))
            case ["stop"]:
                stop()
            case ["tool", name, *arguments]:
                sys.exit(run_tool(name, arguments))
            case _:
                print(USAGE, file=sys.stderr)  # noqa: T201 (a command's usage)
                sys.exit(2)
    except EmbeddedError as error:
        sys.exit(f"konstruct.local.embedded: {error}")
