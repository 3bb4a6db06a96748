"""Settings of a deployment: servers, secrets, hosts, database and cache.

A production refuses weak values.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import dj_database_url

from konstruct.local import embedded, services
from konstruct.settings import environment
from konstruct.settings.environment import flag, names, number, refuse, text, url
from tenants.postgresql.pool import pool_options

# The limits of Django's `check --deploy` (security.W009).
_MIN_SECRET_KEY_CHARACTERS: Final = 50
_MIN_SECRET_KEY_UNIQUE_CHARACTERS: Final = 5
_HOST = re.compile(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]", re.IGNORECASE)
# No public names can be registered below these.
_OWN_DOMAINS: Final = frozenset({"localhost", "local", "internal", "lan", "home", "test"})


def weak_secret_key(key: str, name: str = "SECRET_KEY") -> str:
    """Return why a key that signs sessions is weak, by the rules of `check --deploy`."""
    if (
        len(key) < _MIN_SECRET_KEY_CHARACTERS
        or len(set(key)) < _MIN_SECRET_KEY_UNIQUE_CHARACTERS
        or key.startswith("django-insecure-")
    ):
        return (
            f"{name} is not a random text of at least {_MIN_SECRET_KEY_CHARACTERS} characters: make"
            " one with `openssl rand -hex 32`"
        )
    return ""


def weak_hosts(name: str, hosts: Iterable[str], *, subdomains: bool) -> str:
    """Return an error for the first value that is no host name or matches every host.

    Args:
        hosts: the values of the setting.
        subdomains: whether the setting accepts a leading dot, for all names below a host.
    """
    for host in hosts:
        if "*" in host or host in (".", ""):
            return f"{name} holds {host!r}, which is every host: name the hosts that are served"
        if not _HOST.fullmatch(host):
            return f"{name} has {host!r}, which is not a host name: remove scheme, port and path"
        if host.startswith("."):
            labels = host.strip(".").split(".")
            if not subdomains:
                return f"{name} holds {host!r}: each of these hosts must be named, without a dot"
            if len(labels) == 1 and labels[0].lower() not in _OWN_DOMAINS:
                return f"{name} holds {host!r}, which is every host of a top-level domain"
    return ""


def weak_origins(name: str, origins: Iterable[str]) -> str:
    """Return an error for the first value that is no origin or matches every origin."""
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if not separator or scheme not in ("http", "https"):
            return f"{name} has {origin!r}, which is not an origin such as https://app.example.com"
        # A star before the first dot stands for all names below.
        bare = re.sub(r"^\*(?=\.)|:\d+$", "", host)
        if wrong := weak_hosts(name, [bare], subdomains=True):
            return wrong.replace(repr(bare), repr(origin))
    return ""


def same_role(
    app_url: str, owner_url: str, *, names: str = "DATABASE_URL and DATABASE_OWNER_URL"
) -> str:
    """Return an error if the application could act as the owner: with the same role or password."""
    app, owner = urlsplit(app_url), urlsplit(owner_url)
    if not (app_url and owner_url):
        return ""
    if app.username and app.username == owner.username:
        return (
            f"{names} have the same role, {unquote(app.username)!r}:"
            " web and workers must be konstruct_app, which owns nothing"
        )
    if app.password and app.password == owner.password:
        return (
            f"{names} have the same password, so that the application"
            " could be the owner: give each role its own"
        )
    return ""


BASE_DIR = Path(__file__).resolve().parents[2]

# Servers of the data: embedded under KONSTRUCT_HOME, or by URL.
DATABASE_URL = url("DATABASE_URL")
DATABASE_OWNER_URL = url("DATABASE_OWNER_URL")
# Further servers of tenants, by name, with the application's and the owner's URLs.
TENANT_DATABASES = environment.named_urls("TENANT_DATABASES")
TENANT_DATABASES_OWNER = environment.named_urls("TENANT_DATABASES_OWNER")
# Servers that take no new tenants; "default" is that of DATABASE_URL.
TENANT_DATABASES_CLOSED = names("TENANT_DATABASES_CLOSED", "")
REDIS_URL = url("REDIS_URL")
LLM_POOL_URL = url("LLM_POOL_URL")

# A deployment with its own database is a production, unless a setting disables it.
DEBUG = flag("DEBUG", default=False)
PRODUCTION = bool(DATABASE_URL) and not DEBUG

SECRET_KEY = text("SECRET_KEY")
if not SECRET_KEY:
    if PRODUCTION:
        sys.exit("konstruct: SECRET_KEY is not set; production needs a long random one.")
    SECRET_KEY = services.local_secret_key()
# Former keys: sessions signed with them stay valid, and receipts of erasures are found.
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS", "")
if PRODUCTION:
    for _key in (SECRET_KEY, *SECRET_KEY_FALLBACKS):
        refuse(
            weak_secret_key(
                _key, "SECRET_KEY" if _key == SECRET_KEY else "SECRET_KEY_FALLBACKS: a key"
            )
        )
    refuse(same_role(DATABASE_URL, DATABASE_OWNER_URL))
    for _server in TENANT_DATABASES:
        _pair = {
            f"TENANT_DATABASES ({_server})": TENANT_DATABASES[_server],
            f"TENANT_DATABASES_OWNER ({_server})": TENANT_DATABASES_OWNER.get(_server, ""),
        }
        refuse(same_role(*_pair.values(), names=" and ".join(_pair)))

# Fernet keys for tokens of workspaces, secrets of webhooks and keys of language models: the first
# one encrypts, all of them decrypt.
CHANNEL_TOKEN_KEYS = environment.fernet_keys("CHANNEL_TOKEN_KEYS")
if not CHANNEL_TOKEN_KEYS and not PRODUCTION:
    CHANNEL_TOKEN_KEYS = [services.local_token_key()]

# Hosts of the operators' site and of the neutral API; every other host must be a tenant's domain.
PUBLIC_HOSTS = names("PUBLIC_HOSTS", "localhost,127.0.0.1,[::1]")
ALLOWED_HOSTS = names("ALLOWED_HOSTS", "" if PRODUCTION else ".localhost,localhost,127.0.0.1,[::1]")
if PRODUCTION and not ALLOWED_HOSTS:
    sys.exit("konstruct: ALLOWED_HOSTS is not set; name the hosts that this deployment serves.")
# A new tenant's domain is SLUG.<this>.
TENANT_DOMAIN_SUFFIX = text("TENANT_DOMAIN_SUFFIX", "localhost")
# Port in the links of notifications; 0: the default port of the scheme.
ADMIN_PORT = 0 if PRODUCTION else number("PORT", 8000)
CSRF_TRUSTED_ORIGINS = names("CSRF_TRUSTED_ORIGINS", "")
if PRODUCTION:
    refuse(
        weak_hosts("ALLOWED_HOSTS", ALLOWED_HOSTS, subdomains=True)
        or weak_hosts("PUBLIC_HOSTS", PUBLIC_HOSTS, subdomains=False)
        or weak_hosts("TENANT_DOMAIN_SUFFIX", [TENANT_DOMAIN_SUFFIX], subdomains=False)
        or weak_origins("CSRF_TRUSTED_ORIGINS", CSRF_TRUSTED_ORIGINS)
    )
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if flag("BEHIND_TLS_PROXY", default=False) else None
)
# Proxies in front of the web, each of which adds an entry to X-Forwarded-For. 0: it is not read.
TRUSTED_PROXIES = number("TRUSTED_PROXIES", 0, minimum=0)
# Lifetime of links to set a password: invitations and requested resets.
PASSWORD_RESET_TIMEOUT = 72 * 3600
# A production uses HTTPS unless PLAIN_HTTP is set: without HTTPS, the cookies of a login can be
# read on the way.
PLAIN_HTTP = flag("PLAIN_HTTP", default=not (PRODUCTION or SECURE_PROXY_SSL_HEADER))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not PLAIN_HTTP
SECURE_HSTS_SECONDS = 0 if PLAIN_HTTP else 3600
# Warnings of `check --deploy` about other hosts of the domain, and about redirects to HTTPS: the
# proxy is responsible for both.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
X_FRAME_OPTIONS = "DENY"
SESSION_SERIALIZER = "django.contrib.sessions.serializers.JSONSerializer"

# Web and workers are the application role; migrate, provision and erase are the owner
# (manage.py chooses by command).
DB_ROLE = text("KONSTRUCT_DB_ROLE", "app")
if DB_ROLE not in ("app", "owner"):
    sys.exit(f"konstruct: KONSTRUCT_DB_ROLE={DB_ROLE!r} is neither app nor owner")
EMBEDDED_DATABASE = not DATABASE_URL
if DB_ROLE == "owner" and DATABASE_URL and not DATABASE_OWNER_URL:
    sys.exit(
        "konstruct: DATABASE_OWNER_URL is not set; this command needs the owner's role "
        "(see docs/operations.md)."
    )
# The role of the application, for every user of this process.
APPLICATION_DATABASE_URL = DATABASE_URL or services.database_url("app")
# The URL of the owner's role; empty in processes that must not have it.
OWNER_DATABASE_URL = services.database_url("owner") if EMBEDDED_DATABASE else DATABASE_OWNER_URL
if DB_ROLE == "app":
    _databases = {"default": APPLICATION_DATABASE_URL, **TENANT_DATABASES}
else:
    _databases = {"default": OWNER_DATABASE_URL, **TENANT_DATABASES_OWNER}
if _missing := sorted(TENANT_DATABASES.keys() - _databases.keys()):
    sys.exit(
        f"konstruct: TENANT_DATABASES_OWNER names no {', '.join(_missing)}; this command needs the "
        "owner's role on each server of TENANT_DATABASES."
    )
if _unknown := sorted(
    {*TENANT_DATABASES_OWNER, *TENANT_DATABASES_CLOSED} - {"default", *TENANT_DATABASES}
):
    sys.exit(
        f"konstruct: {', '.join(_unknown)} is not a server of TENANT_DATABASES: remove it from "
        "TENANT_DATABASES_OWNER and TENANT_DATABASES_CLOSED."
    )
# Seconds. The backend of a connection uses memory for every tenant that it has served.
_CONN_MAX_AGE = 600
# Connections that all threads of the process share, for each server; 0: each thread keeps its own.
# The owner's statements belong to a session.
DATABASE_POOL_SIZE = number("DATABASE_POOL_SIZE", 0, minimum=0) if DB_ROLE == "app" else 0
DATABASES: dict[str, dict[str, Any]] = {
    _server: {
        **dj_database_url.parse(
            _server_url,
            conn_max_age=0 if DATABASE_POOL_SIZE else _CONN_MAX_AGE,
            conn_health_checks=not DATABASE_POOL_SIZE,  # take_from_pool checks without asking
        ),
        "ENGINE": "tenants.postgresql",
    }
    for _server, _server_url in _databases.items()
}
# A server that does not answer must not block a thread that serves all tenants. Connections to a
# lost machine end within half a minute (libpq; a Unix socket does not need it).
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
for _server, _database in DATABASES.items():
    _database["OPTIONS"] = {
        **_PATIENCE,
        **_database.get("OPTIONS", {}),
        "server_side_binding": True,
    }
    if DATABASE_POOL_SIZE:
        _database["OPTIONS"]["pool"] = pool_options(_server, DATABASE_POOL_SIZE, _CONN_MAX_AGE)
# django-tenants requires the second one, which has no effect after the first.
DATABASE_ROUTERS = ["tenants.servers.ServerRouter", "django_tenants.routers.TenantSyncRouter"]
# Called for the directory of pg_dump and pg_restore. None: wherever PATH finds them.
POSTGRES_BIN = "konstruct.local.services.binaries" if EMBEDDED_DATABASE else None
# The journal of erasures, outside of the database: see tenants/journal.py.
ERASURE_JOURNAL = text("ERASURE_JOURNAL")
if EMBEDDED_DATABASE and not ERASURE_JOURNAL:
    ERASURE_JOURNAL = str(services.local_journal())
TENANT_MODEL = "tenants.Tenant"
TENANT_DOMAIN_MODEL = "tenants.Domain"
# The vector type lives here, so that every tenant's schema finds it.
PG_EXTRA_SEARCH_PATHS = ["extensions"]
# Validation would connect to the database at every start, for a name that is known to be right.
SKIP_PG_EXTRA_VALIDATION = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EMBEDDED_CACHE = not REDIS_URL
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": services.redis_url() if EMBEDDED_CACHE else REDIS_URL,
        "KEY_FUNCTION": "tenants.redis_keys.key_of_current_tenant",
        "OPTIONS": {
            # The default is pickle, by which a writer to the cache runs code in its readers.
            "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
            "SOCKET_CONNECT_TIMEOUT": 2,
            "SOCKET_TIMEOUT": 5,
        },
    }
}
# Called before the first connection to a database: they start the services without a URL.
EMBEDDED_SERVICES = [
    *([embedded.ensure_postgres] if EMBEDDED_DATABASE else []),
    *([embedded.ensure_valkey] if EMBEDDED_CACHE else []),
]
