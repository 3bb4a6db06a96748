"""Paths of the embedded services, computed from KONSTRUCT_HOME. Nothing is started.

Data, logs and locks are in the home. Sockets are not, because the path of a Unix socket has at most
107 bytes: they are in a short directory in /tmp, of this user only, named after a hash of the home.
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
    """An embedded service cannot be started or stopped.

    The message has the reason and the remedy.
    """


def home() -> Path:
    """Return the directory of data, logs and locks, with symbolic links resolved."""
    return Path(os.environ.get("KONSTRUCT_HOME") or PROJECT / ".konstruct").resolve()


def socket_directory() -> Path:
    """Return the directory of this home's sockets; `make_socket_directory` creates it."""
    key = hashlib.sha256(os.fsencode(home())).hexdigest()[:16]
    return Path(f"/tmp/konstruct-{os.geteuid()}") / key  # noqa: S108 (checked when made)


def database_url(role: str, name: str = DATABASE) -> str:
    """Return the URL of the embedded Postgres for a role: app, owner or superuser (tests, backups).

    It names the file with the role's password, which libpq reads.
    """
    passfile = quote(str(password_file(role)), safe="")
    host = quote(str(socket_directory()), safe="")
    return f"postgresql://{ROLES[role]}@{host}:5432/{quote(name)}?passfile={passfile}"


def password_file(role: str) -> Path:
    """Return the file of a role's password in libpq's format; `password_of` creates it."""
    if role not in ROLES:
        raise ValueError(f"role {role!r} is not one of {', '.join(ROLES)}")
    return home() / f"{ROLES[role]}.pgpass"


def password_of(role: str) -> str:
    """Return the password of a role of the embedded Postgres, generated on first use."""
    line = _get_or_create_secret(
        password_file(role).name, lambda: f"*:*:*:*:{secrets.token_urlsafe(32)}\n"
    )
    return line.strip().rpartition(":")[2]


def supervisor_socket() -> Path:
    """Return the path of the command socket of this home's supervisord."""
    return socket_directory().with_suffix(".supervisor")


def supervisor_pid_file() -> Path:
    """Return the file with the process id of this home's supervisord."""
    return home() / "supervisord.pid"


def valkey_socket() -> Path:
    """Return the path of the embedded Valkey's socket."""
    return socket_directory() / "valkey.sock"


def redis_url(db: int = 0) -> str:
    """Return the URL of the embedded Valkey, for redis-py."""
    return f"unix://{valkey_socket()}?db={db}"


def broker_url(db: int = 1) -> str:
    """Return the URL of the embedded Valkey as a Celery broker; its database is not the cache's."""
    return f"redis+socket://{valkey_socket()}?virtual_host={db}"


def users_lock() -> Path:
    """Return the file that every process with embedded services of this home locks, shared."""
    return home() / "users.lock"


def serve_lock() -> Path:
    """Return the file that the server of this home locks, with its process id."""
    return home() / "serve.lock"


def make_home() -> Path:
    """Create the home, readable by this user only, and return it."""
    path = home()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(f"KONSTRUCT_HOME {path} cannot be created: {error}") from error
    return path


def make_socket_directory() -> Path:
    """Create the directory of the sockets; refuse one that another user could have prepared."""
    path = socket_directory()
    # Root's Postgres runs as another user, which needs to pass to its own directory.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=mode)
    status = path.parent.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise EmbeddedError(
            f"{path.parent} is not a directory of this user; remove it, for the sockets of the "
            "embedded services must not lie where another user can replace them"
        )
    path.parent.chmod(mode)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def local_secret_key() -> str:
    """Return the key that signs this checkout's sessions."""
    return _get_or_create_secret("secret_key", lambda: secrets.token_urlsafe(50))


def local_token_key() -> str:
    """Return the Fernet key that encrypts the tokens of this checkout's workspaces."""
    return _get_or_create_secret(
        "token_key", lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    )


def local_journal() -> Path:
    """Return the path of this home's journal of erasures, created on first use."""
    path = make_home() / "erasures.jsonl"
    path.touch(mode=0o600)
    return path


def _get_or_create_secret(name: str, make: Callable[[], str]) -> str:
    """Return the secret with this name: generated once, readable by this user only."""
    path = make_home() / name
    if not path.exists():
        draft = path.with_name(f"{name}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(make())
        # If several processes start at the same time, the key of the first one stays.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text()
