"""A console that stays open between blocks. Its manage.py is the test's own process.

Django is loaded once instead of once for each command. The rest is bash: variables, substitutions,
pipes, curl.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.core.management import CommandError, call_command

from tenants.naming import OWNER_COMMANDS
from tests import database

# `manage` writes its arguments into a file and waits for its exit status. `curl` has --fail-with-
# body, so that an example with an error status fails.
PROGRAM = """
set -euo pipefail
manage() {{
    printf '%s\\0' "$@" >manage.arguments
    echo manage >&{to_test}
    local status
    read -r status <&{from_test}
    cat manage.output
    return "$status"
}}
curl() {{ command curl --silent --show-error --fail-with-body "$@"; echo; }}
while read -r block <&{from_test}; do
    source "$block" >block.output 2>&1 </dev/null
    echo done >&{to_test}
done
"""


class Console:
    """A bash that gets the commands of a reader."""

    def __init__(self, folder: Path, environment: Mapping[str, str], url: str) -> None:
        self._folder, self._url = folder, url
        to_test, from_test = os.pipe(), os.pipe()
        program = PROGRAM.format(to_test=to_test[1], from_test=from_test[0])
        self._bash = subprocess.Popen(
            ["/bin/bash", "-c", program],
            cwd=folder,
            env=environment,
            pass_fds=(to_test[1], from_test[0]),
        )
        os.close(to_test[1])
        os.close(from_test[0])
        self._said = os.fdopen(to_test[0])
        self._tell = os.fdopen(from_test[1], "w", buffering=1)

    def type(self, commands: str) -> str:
        """Run commands. Return their output. AssertionError if one of them fails."""
        here = commands.replace(".venv/bin/python manage.py", "manage")
        here = re.sub(r"(?:\.venv|~/agents)/bin/(\w+)", rf"{Path(sys.executable).parent}/\1", here)
        here = here.replace("localhost:8000", self._url.removeprefix("http://"))
        block = self._folder / "block"
        block.write_text(here)
        self._tell.write(f"{block}\n")
        for line in self._said:
            if line == "done\n":
                return self._output()
            status, output = manage(
                *(self._folder / "manage.arguments").read_text().split("\0")[:-1]
            )
            (self._folder / "manage.output").write_text(output)
            self._tell.write(f"{status}\n")
        raise AssertionError(f"{shlex.quote(commands)} failed:\n{self._output()}")

    def close(self) -> None:
        """End the bash."""
        self._tell.close()
        self._said.close()
        self._bash.wait(30)

    def _output(self) -> str:
        return (self._folder / "block.output").read_text()


@contextlib.contextmanager
def console(folder: Path, environment: Mapping[str, str], url: str) -> Iterator[Console]:
    """Open a console in a folder during the block."""
    opened = Console(folder, environment, url)
    try:
        yield opened
    finally:
        opened.close()


def manage(command: str, *arguments: str) -> tuple[int, str]:
    """Run a command of manage.py as its database role. Return exit status and output."""
    role = database.as_owner() if command in OWNER_COMMANDS else contextlib.nullcontext()
    with role, contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            call_command(command, *arguments)
        except CommandError as error:
            print(f"CommandError: {error}")  # noqa: T201  (into what is returned)
            return error.returncode, printed.getvalue()
        except SystemExit as ended:
            return int(ended.code or 0), printed.getvalue()
    return 0, printed.getvalue()
