"""A production with guessable secrets or wildcard hosts does not start."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from konstruct.middleware import POLICIES
from konstruct.settings import deployment
from tests.konstruct.running import run_python

# The same in all processes of the tests, which must collect the same tests.
RANDOM = "f1d9c5287e0b4a63d8f2916c7ae5340b92e84f6d1c7350a8be6f92d40173c58e"
GOOD = {
    "DATABASE_URL": "postgresql://konstruct_app:8c1f0d7be1a94f9d@db.example.com/konstruct",
    "DATABASE_OWNER_URL": "postgresql://konstruct_owner:51f7c1be9e0d4aa2@db.example.com/konstruct",
    "REDIS_URL": "redis://:f24bb1937c0e4d55@cache.example.com/0",
    "SECRET_KEY": RANDOM,
    "ALLOWED_HOSTS": ".example.com,127.0.0.1,[::1]",
    "PUBLIC_HOSTS": "konstruct.example.com,127.0.0.1",
    "TENANT_DOMAIN_SUFFIX": "example.com",
    "CSRF_TRUSTED_ORIGINS": "https://*.example.com",
}


def start(*arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    """Start Python with a production's settings and these changes."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return run_python(*arguments, env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **GOOD, **changes})


def settings_of(*names: str, **changes: str) -> list[object]:
    code = "import json; from konstruct import settings as s;" + (
        f"print(json.dumps([getattr(s, name) for name in {names!r}]))"
    )
    ran = start("-c", code, **changes)
    assert ran.returncode == 0, ran.stderr
    values: list[object] = json.loads(ran.stdout)
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"SECRET_KEY": "a"}, "SECRET_KEY is not a random text of at least 50"),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS holds '*', which is every host"),
        ({"DATABASE_URL": GOOD["DATABASE_OWNER_URL"]}, "DATABASE_URL and DATABASE_OWNER_URL have"),
        ({"REDIS_URL": "unix:///run/valkey.sock"}, "Celery does not know unix://. Set"),
    ],
)
def test_unsafe_settings_stop_the_process_with_one_line(changes: dict[str, str], line: str) -> None:
    for arguments in (["manage.py", "check"], ["-c", "import konstruct.settings"]):
        ran = start(*arguments, **changes)
        assert ran.returncode == 1
        assert ran.stderr.startswith(f"konstruct: {line}")
        assert (ran.stderr.count("\n"), ran.stdout) == (1, "")


@pytest.mark.parametrize(
    "key", ["", "a", "x" * 200, "ab" * 100, "django-insecure-" + RANDOM, RANDOM[:48]]
)
def test_a_weak_secret_key_is_refused_and_not_shown(key: str) -> None:
    error = deployment.weak_secret_key(key)
    assert error.startswith("SECRET_KEY ")
    assert len(key) < 5 or key not in error


@pytest.mark.parametrize(
    "host",
    [
        "*", "**", ".", "", ".com", ".COM", ".com.", "*.example.com", "example.*",
        "https://example.com", "example.com:8000", "example.com/", "exa mple.com",
    ],
)  # fmt: skip
def test_wildcard_or_empty_host_is_refused(host: str) -> None:
    assert deployment.weak_hosts("H", ["good.example.com", host], subdomains=True)
    assert deployment.weak_hosts("H", [host], subdomains=False)


@pytest.mark.parametrize("origin", ["*", "https://*", "http://*.com", "https://", "example.com"])
def test_wildcard_origin_is_refused(origin: str) -> None:
    assert repr(origin) in deployment.weak_origins("O", [origin])


def test_the_application_is_not_the_owner() -> None:
    app, owner = GOOD["DATABASE_URL"], GOOD["DATABASE_OWNER_URL"]
    assert deployment.same_role(app, owner) == deployment.same_role(app, "") == ""
    assert "the same role, 'konstruct_owner'" in deployment.same_role(owner, owner)
    shared = owner.replace("51f7c1be9e0d4aa2", "8c1f0d7be1a94f9d")
    assert "the same password" in deployment.same_role(app, shared)


@pytest.mark.slow
def test_secure_cookies_and_hsts_are_on_unless_plain_http_is_set() -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS", "DEBUG")
    assert settings_of(*names) == [True, True, 3600, False]
    assert settings_of(*names, BEHIND_TLS_PROXY="true") == [True, True, 3600, False]
    assert settings_of(*names, PLAIN_HTTP="true") == [False, False, 0, False]
    # On a local machine without a remote database, a browser uses HTTP.
    assert settings_of(*names, DATABASE_URL="", DATABASE_OWNER_URL="") == [False, False, 0, False]


@pytest.mark.slow
def test_check_deploy_has_no_findings() -> None:
    ran = start("manage.py", "check", "--deploy", "--tag", "security", "--fail-level", "WARNING")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "System check identified no issues" in ran.stdout


def test_content_security_policy_of_the_api_documentation(db: None) -> None:
    client = Client(headers={"Host": "localhost"})
    page = client.get("/api/docs/")
    assert page.headers["Content-Security-Policy"] == POLICIES["/api/docs/"]
    policy = dict(part.split(" ", 1) for part in POLICIES["/api/docs/"].split("; "))
    assert (policy["default-src"], policy["script-src"]) == ("'none'", "'self'")
    html = page.content.decode()
    # The policy blocks nothing: each script is a file of this host, and none is inline.
    scripts = html.split("<script")[1:]
    assert len(scripts) == 3
    for script in scripts:
        source = script.split('src="')[1].split('"')[0]
        assert source.startswith("/")
        assert script.split(">", 1)[1].startswith("</script>")
        answer = client.get(source.replace("&amp;", "&"))
        answer.close()
        assert (answer.status_code, "javascript" in answer.headers["Content-Type"]) == (200, True)


def test_pages_run_files_of_this_host_alone() -> None:
    for policy in POLICIES.values():
        assert "; script-src 'self'; " in policy
        assert "unsafe-eval" not in policy


def test_alpines_build_that_evaluates_no_text_is_served_in_the_place_of_unfolds() -> None:
    served = finders.find("unfold/js/alpine/alpine.js")
    assert served is not None
    assert "@alpinejs/csp 3.17.4" in Path(served).read_text()[:200]
    # Alpine of unfold: without it nothing is replaced.
    assert len(finders.find("unfold/js/alpine/alpine.js", find_all=True)) == 2
