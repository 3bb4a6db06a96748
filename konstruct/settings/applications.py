"""Applications, middleware, URLs and templates."""

from konstruct.settings.deployment import BASE_DIR

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
    "tenants.http.middleware.TenantMiddleware",
    "tenants.http.sessions.SessionMiddleware",
    "konstruct.api.http.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "konstruct.api.http.middleware.ApiKeyTenantMiddleware",
]
ROOT_URLCONF = "konstruct.urls.tenant"
PUBLIC_SCHEMA_URLCONF = "konstruct.urls.public"
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
