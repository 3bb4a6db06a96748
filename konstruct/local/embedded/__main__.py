"""`python -m konstruct.local.embedded`: stop the services, or run a tool on them."""

import os
import subprocess
import sys

from konstruct.local.embedded import paths, supervision
from konstruct.local.embedded.services import SETTINGS, binaries

USAGE = """usage: python -m konstruct.local.embedded stop
       python -m konstruct.local.embedded tool (psql | pg_dump | pg_restore | …) [arguments]"""


def run_tool(name: str, arguments: list[str]) -> int:
    """Run a program of Postgres as the superuser on the embedded database; return its exit
    status.
    """
    tool = binaries() / name
    if not tool.exists():
        names = ", ".join(sorted(path.name for path in binaries().iterdir()))
        raise paths.EmbeddedError(f"there is no {name}; there are {names}")
    supervision.ensure_postgres()
    connection = {
        "PGHOST": str(paths.socket_directory()),
        "PGPORT": SETTINGS["port"],
        "PGUSER": paths.ROLES["superuser"],
        "PGPASSFILE": str(paths.password_file("superuser")),
        "PGDATABASE": paths.DATABASE,
    }
    # Not by exec, which would free the user's lock, and stop Postgres with its last user.
    return subprocess.run([tool, *arguments], env={**os.environ, **connection}).returncode


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            # The programs of deploy/embedded.conf.
            case ["run", name] if name in supervision.SERVICES:
                supervision.SERVICES[name].run()
            case ["watch"]:
                supervision.watch_users()
            case ["stop"]:
                supervision.stop()
            case ["tool", name, *arguments]:
                sys.exit(run_tool(name, arguments))
            case _:
                print(USAGE, file=sys.stderr)  # noqa: T201 (a command's usage)
                sys.exit(2)
    except paths.EmbeddedError as error:
        print(f"konstruct.local.embedded: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(supervision.CANNOT_START if sys.argv[1] == "run" else 1)
