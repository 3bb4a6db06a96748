"""Where the embedded services live: names computed from KONSTRUCT_HOME, nothing started.

Data, logs and locks are under the home. Sockets are not: a Unix socket's path may not pass 107
bytes, so they get a short directory in /tmp, of this user alone, named after a hash of the home.
(Not in $TMPDIR or $XDG_RUNTIME_DIR: a cron job and a login shell must compute the same name.)
"""

import base64
import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from tenants.exceptions import KonstructError

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
DATABASE = "konstruct"
ROLES = {"app": "konstruct_app", "owner": "konstruct_owner", "superuser": "postgres"}


class EmbeddedError(KonstructError):
    """An embedded service cannot be started or stopped; the message says why and what to do."""


def home() -> Path:
    """The directory of data, logs and locks, symbolic links resolved."""
    return Path(os.environ.get("KONSTRUCT_HOME") or PROJECT / ".konstruct").resolve()


def socket_directory() -> Path:
    """The directory of this home's sockets. Not made here: see `make_socket_directory`."""
    key = hashlib.sha256(os.fsencode(home())).hexdigest()[:16]
    return Path(f"/tmp/konstruct-{os.geteuid()}") / key  # noqa: S108 (checked when made)


def database_url(role: str, name: str = DATABASE) -> str:
    """The URL of the embedded Postgres for a role: app, owner or superuser (tests and backups).

    It names the file from which libpq takes the role's password, and does not hold it.
    """
    passfile = quote(str(password_file(role)), safe="")
    host = quote(str(socket_directory()), safe="")
    return f"postgresql://{ROLES[role]}@{host}:5432/{quote(name)}?passfile={passfile}"


def password_file(role: str) -> Path:
    """The file of a role's password, as libpq reads it. Not made here: see `password_of`."""
    if role not in ROLES:
        raise ValueError(f"role {role!r} is none of {', '.join(ROLES)}")
    return home() / f"{ROLES[role]}.pgpass"


def password_of(role: str) -> str:
    """The password of a role of the embedded Postgres, made if there is none."""
    kept = _kept_secret(password_file(role).name, lambda: f"*:*:*:*:{secrets.token_urlsafe(32)}\n")
    return kept.strip().rpartition(":")[2]


def supervisor_socket() -> Path:
    """The path of the socket on which the supervisord of this home takes commands."""
    return socket_directory().with_suffix(".supervisor")


def supervisor_pid_file() -> Path:
    """The file with the process id of this home's supervisord."""
    return home() / "supervisord.pid"


def valkey_socket() -> Path:
    """The path of the embedded Valkey's socket."""
    return socket_directory() / "valkey.sock"


def redis_url(db: int = 0) -> str:
    """The URL of the embedded Valkey, for redis-py."""
    return f"unix://{valkey_socket()}?db={db}"


def broker_url(db: int = 1) -> str:
    """The URL of the embedded Valkey as a Celery broker; not the cache's database."""
    return f"redis+socket://{valkey_socket()}?virtual_host={db}"


def users_lock() -> Path:
    """Locked, shared, by every process that uses the embedded services of this home."""
    return home() / "users.lock"


def serve_lock() -> Path:
    """Locked by the server of this home (konstruct/local/serving.py), with its process id in it."""
    return home() / "serve.lock"


def migrating_lock() -> Path:
    """Locked by the server of this home while it migrates: its processes wait for it."""
    return home() / "migrating.lock"


def make_home() -> Path:
    """Create the home, closed to other users of the machine, and return it."""
    path = home()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(f"KONSTRUCT_HOME {path} cannot be created: {error}") from error
    return path


def make_socket_directory() -> Path:
    """Create the directory of the sockets, and refuse one that another user could have prepared."""
    path = socket_directory()
    # Root's Postgres runs as another user, which has to pass through here to its own directory.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=mode)
    found = path.parent.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise EmbeddedError(
            f"{path.parent} is not a directory of this user; remove it, for the sockets of the "
            "embedded services must not lie where another user can replace them"
        )
    path.parent.chmod(mode)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def local_secret_key() -> str:
    """The key that signs this checkout's sessions."""
    return _kept_secret("secret_key", lambda: secrets.token_urlsafe(50))


def local_token_key() -> str:
    """The Fernet key that encrypts the tokens of this checkout's workspaces."""
    return _kept_secret(
        "token_key", lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    )


def local_journal() -> Path:
    """Return the path of this home's journal of erasures, made if there is none."""
    path = make_home() / "erasures.jsonl"
    path.touch(mode=0o600)
    return path


def _kept_secret(name: str, make: Callable[[], str]) -> str:
    """Return the secret of that name: made once, readable by its user alone."""
    path = make_home() / name
    if not path.exists():
        draft = path.with_name(f"{name}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(make())
        # Of several processes that start together, the first one's key stays.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text()
