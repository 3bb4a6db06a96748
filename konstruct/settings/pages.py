"""Pages: language, static files, passwords, and what the admin looks like."""

from django.templatetags.static import static
from django.urls import reverse_lazy

from konstruct.settings.deployment import BASE_DIR
from konstruct.settings.environment import text

LANGUAGE_CODE = "en-us"
# Pages are in English: to look each of their words up in an empty catalogue, and the names of a
# hundred languages for a menu that has none, was a tenth of what a page took.
USE_I18N = False
LANGUAGES = [("en", "English")]
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = "konstruct.formats"
STATIC_URL = "/static/"
# None, not an empty folder: WhiteNoise would warn at every start.
STATIC_ROOT = text("STATIC_ROOT") or None
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
    "SCRIPTS": [lambda request: static("konstruct/alpine.js")],
    "DASHBOARD_CALLBACK": "konstruct.admin.dashboard.dashboard",
    "SIDEBAR": {"navigation": "konstruct.admin.menu.navigation"},
}
