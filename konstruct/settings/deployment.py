"""Settings of a deployment: servers, secrets and hosts. A production refuses weak values."""

import sys
from pathlib import Path

from konstruct.local import embedded
from konstruct.settings import weak_values
from konstruct.settings.environment import (
    fernet_keys,
    flag,
    named_urls,
    names,
    number,
    refuse,
    text,
    url,
)

BASE_DIR = Path(__file__).resolve().parents[2]

# Servers of the data: embedded under KONSTRUCT_HOME, or by URL.
DATABASE_URL = url("DATABASE_URL")
DATABASE_OWNER_URL = url("DATABASE_OWNER_URL")
# Further servers of tenants, by name, with the application's and the owner's URLs.
TENANT_DATABASES = named_urls("TENANT_DATABASES")
TENANT_DATABASES_OWNER = named_urls("TENANT_DATABASES_OWNER")
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
    SECRET_KEY = embedded.local_secret_key()
# Former keys: sessions signed with them stay valid, and receipts of erasures are found.
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS", "")
if PRODUCTION:
    for _key in (SECRET_KEY, *SECRET_KEY_FALLBACKS):
        refuse(
            weak_values.weak_secret_key(
                _key, "SECRET_KEY" if _key == SECRET_KEY else "SECRET_KEY_FALLBACKS: a key"
            )
        )
    refuse(weak_values.same_role(DATABASE_URL, DATABASE_OWNER_URL))
    for _server in TENANT_DATABASES:
        _pair = {
            f"TENANT_DATABASES ({_server})": TENANT_DATABASES[_server],
            f"TENANT_DATABASES_OWNER ({_server})": TENANT_DATABASES_OWNER.get(_server, ""),
        }
        refuse(weak_values.same_role(*_pair.values(), names=" and ".join(_pair)))

# Fernet keys for the tokens of workspaces: the first one encrypts, all of them decrypt.
CHANNEL_TOKEN_KEYS = fernet_keys("CHANNEL_TOKEN_KEYS")
if not CHANNEL_TOKEN_KEYS and not PRODUCTION:
    CHANNEL_TOKEN_KEYS = [embedded.local_token_key()]

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
        weak_values.weak_hosts("ALLOWED_HOSTS", ALLOWED_HOSTS, subdomains=True)
        or weak_values.weak_hosts("PUBLIC_HOSTS", PUBLIC_HOSTS, subdomains=False)
        or weak_values.weak_hosts("TENANT_DOMAIN_SUFFIX", [TENANT_DOMAIN_SUFFIX], subdomains=False)
        or weak_values.weak_origins("CSRF_TRUSTED_ORIGINS", CSRF_TRUSTED_ORIGINS)
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
