"""Applications, middleware, URLs and templates, and the look of pages."""

from django.templatetags.static import static
from django.urls import reverse_lazy

from konstruct.settings.deployment import BASE_DIR, PLAIN_HTTP
from konstruct.settings.environment import choice

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
    "konstruct.api.http.middleware.RequestIdMiddleware",
    "tenants.http.client_address.ClientAddressMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "konstruct.api.http.middleware.ProblemMiddleware",
    "konstruct.content_security.ContentSecurityMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "konstruct.languages.LanguageMiddleware",
    "tenants.http.middleware.TenantMiddleware",
    "tenants.http.middleware.SessionMiddleware",
    "konstruct.api.http.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "konstruct.admin.middleware.AdminMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "konstruct.api.http.middleware.ApiKeyTenantMiddleware",
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
        lambda request: static("konstruct/alpine.js"),
        lambda request: static("konstruct/copy.js"),
        lambda request: static("konstruct/time_zone.js"),
        lambda request: static("konstruct/accessible.js"),
        lambda request: static("konstruct/forms.js"),
        lambda request: static("konstruct/downloads.js"),
    ],
    "DASHBOARD_CALLBACK": "konstruct.admin.dashboard.dashboard",
    "SIDEBAR": {
        "navigation": "konstruct.admin.menu.navigation",
        "show_search": True,
        "command_search": True,
    },
    "COMMAND": {"search_callback": "konstruct.admin.memory.search.palette"},
}
