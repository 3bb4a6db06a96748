"""`python -m konstruct.embedded guard SERVICE` is a guardian; `stop` stops the home's services."""

import sys

from konstruct.embedded.guardian import detach, guard
from konstruct.embedded.users import SERVICES, stop

USAGE = f"usage: python -m konstruct.embedded guard ({' | '.join(SERVICES)}) | stop"

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["guard", name] if name in SERVICES:
            detach()
            sys.exit(guard(SERVICES[name]))
        case ["stop"]:
            stop()
        case _:
            sys.exit(USAGE)
