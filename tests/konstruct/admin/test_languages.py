"""Pages use the language of their reader, with each text translated. The APIs are English."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal

from django.conf import settings
from django.test import Client
from django.utils.formats import date_format
from django.utils.translation import override

from tenants.admin.badges import format_number
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.limits.quotas import Quota, QuotaExceeded
from tenants.models import Tenant
from tests.konstruct.admin.catalogues import LANGUAGES, LOCALE, ROOT, catalogue, marked_texts
from tests.konstruct.conftest import Program

PLACEHOLDER = re.compile(r"%\(\w+\)[sr]|\{\w*\}|%%|</?\w[^>]*>")
GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


def test_each_marked_text_is_translated() -> None:
    texts = set(marked_texts())
    for language in LANGUAGES:
        entries = list(catalogue(language))
        assert {(entry.msgid, entry.msgid_plural) for entry in entries} == texts
        assert [entry.msgid for entry in entries if not entry.translated() or entry.fuzzy] == []


def test_translations_have_the_placeholders_of_their_texts() -> None:
    for language in LANGUAGES:
        for entry in catalogue(language):
            forms = entry.msgstr_plural or {0: entry.msgstr}
            for number, form in forms.items():
                source = entry.msgid_plural if number else entry.msgid
                found = sorted(PLACEHOLDER.findall(form)), sorted(PLACEHOLDER.findall(source))
                assert found[0] == found[1], entry.msgid
                # It is in attributes too.
                assert '"' in source or '"' not in form, entry.msgid


def test_the_compiled_catalogues_are_those_of_the_texts() -> None:
    for language in LANGUAGES:
        compiled = (LOCALE / language / "LC_MESSAGES" / "django.mo").read_bytes()
        assert compiled == catalogue(language).to_binary()


def test_pages_are_in_the_language_of_the_browser(
    tenant_a: Tenant, browser: Callable[..., Client]
) -> None:
    client = browser(tenant_a)
    page = client.get("/admin/", headers=GERMAN)
    assert '<html lang="de"' in page.text
    assert "Gespräche" in page.text
    assert (page["Content-Language"], "Accept-Language" in page["Vary"]) == ("de", True)
    assert "Conversaciones" in client.get("/admin/", headers={"Accept-Language": "es"}).text
    assert "Conversations" in client.get("/admin/", headers={"Accept-Language": "fr"}).text


def test_the_choice_of_the_user_menu_holds(
    tenant_a: Tenant, browser: Callable[..., Client]
) -> None:
    client = browser(tenant_a)
    menu = client.get("/admin/").text
    assert 'action="/admin/language/"' in menu
    answer = client.post("/admin/language/", {"language": "de", "next": "/admin/"})
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert client.cookies[settings.LANGUAGE_COOKIE_NAME]["httponly"]
    assert "Gespräche" in client.get("/admin/", headers={"Accept-Language": "es"}).text
    elsewhere = client.post("/admin/language/", {"language": "de", "next": "https://evil.example/"})
    assert elsewhere["Location"] == "/"


def test_error_pages_are_translated(tenant_a: Tenant) -> None:
    client = Client(headers={"Host": "no-tenant.localhost", "Accept": "text/html", **GERMAN})
    page = client.get("/admin/")
    assert "Kein Dienst hat diese Adresse" in page.text
    assert '<html lang="de"' in page.text


def test_api_is_english_with_any_accept_language(program_a: Program) -> None:
    for path in ("/api/v1/nowhere/", "/api/v1/agents/?page_size=x", "/v1/models/nowhere"):
        english, german = program_a.get(path), program_a.get(path, headers=GERMAN)
        fields = {k: v for k, v in german.json().items() if k != "request_id"}
        assert fields == {k: v for k, v in english.json().items() if k != "request_id"}
    wrong = program_a.post("/api/v1/messages/", {"agent": "ada"}, headers=GERMAN)
    assert "This field is required." in wrong.text


# Words of templates that are equal in every language: names, units, keys, types.
UNTRANSLATED = {"Konstruct", "kbd", "ms", "UTC", "JSON", "manage_search", "Ctrl"}
NO_TEXT = re.compile(
    r"\{% (?:blocktranslate|comment).*?%\}.*?\{% end(?:blocktranslate|comment) %\}"
    r"|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<!--.*?-->|<script.*?</script>|&\w+;|&#\d+;",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r'(?:aria-label|title|placeholder|alt)="([^"]*)"')


def test_no_template_has_a_text_without_a_mark() -> None:
    found = []
    for path in sorted((ROOT / "konstruct" / "templates").rglob("*.*")):
        source = NO_TEXT.sub(" ", path.read_text())
        texts = [*ATTRIBUTE.findall(source), re.sub(r"<[^>]*>", " ", source)]
        words = {word for text in texts for word in re.findall(r"[A-Za-z_]{2,}", text)}
        if path.suffix == ".txt":
            words -= {"admin", "password"}  # of the link
        found += [(path.name, word) for word in sorted(words - UNTRANSLATED)]
    assert found == []


def test_numbers_and_days_are_written_as_the_reader_writes_them() -> None:
    shown = {}
    for language in ("en", "de", "es"):
        with override(language):
            shown[language] = [
                format_number(1234567),
                format_number(Decimal("1234.567"), 2),
                date_format(date(2026, 3, 7), "MONTH_DAY_FORMAT"),
            ]
    assert shown == {
        "en": ["1,234,567", "1,234.57", "7 Mar"],
        "de": ["1.234.567", "1.234,57", "7. Mär"],
        "es": ["1\xa0234\xa0567", "1\xa0234,57", "7 mar"],
    }


def test_a_refusal_by_a_quota_is_in_the_language_of_the_reader() -> None:
    with override("de"):
        german = str(QuotaExceeded(Quota.API_KEYS, limit=Decimal(1000), used=1000))
    assert german == (
        "Das Kontingent ist aufgebraucht: API-Schlüssel – Limit 1.000, verbraucht 1.000."
        " Widerrufen Sie einen Schlüssel, oder bitten Sie den Betreiber um ein höheres Limit."
    )
    english = str(QuotaExceeded(Quota.API_KEYS, limit=Decimal(1000), used=1000))
    assert english == (
        "The quota is used up: API keys is limited to 1,000, and 1,000 are used."
        " Revoke a key, or ask the operator for a higher limit."
    )


def test_a_refused_page_names_the_permission_in_the_language_of_the_reader(
    tenant_a: Tenant, browser: Callable[..., Client]
) -> None:
    client = browser(tenant_a, "view_message")
    refused = client.get("/admin/orchestrator/agent/", headers=GERMAN)
    assert refused.status_code == 403
    assert "<strong>Darf ansehen: Agenten</strong>" in refused.text
    exports = client.get("/admin/people/person/export/?user=eve", headers=GERMAN)
    assert "Darf alle Daten einer Person exportieren" in exports.text


def test_access_log_subjects_are_stored_in_english_and_shown_translated(
    tenant_a: Tenant, browser: Callable[..., Client]
) -> None:
    client = browser(tenant_a)
    client.get("/admin/search/?q=tea", headers=GERMAN)
    page = client.get("/admin/audit/accessevent/", headers=GERMAN).text
    cells = [cell.strip() for cell in re.split(r"<[^>]*>", page)]
    assert ("alles" in cells, "everything" in cells) == (True, False)
    with tenant_scope(tenant_a.id):
        subjects = set(AccessEvent.objects.values_list("subject", flat=True))
    assert {"everything", "access"} <= subjects


# Words with one correct translation in the catalogues, and a wrong one.
WRONG_WORDS = {
    "de": re.compile(r"\bIds?\b|(?<![-\w])Mail(adresse)?\b|Workspace|\bGrenzen?\b"),
    "es": re.compile(r"[Pp]ertinente|escalado|escalamiento"),
}


def test_a_thing_has_one_name_in_a_catalogue() -> None:
    found = []
    for language, wrong in WRONG_WORDS.items():
        for entry in catalogue(language):
            forms = (entry.msgstr, *entry.msgstr_plural.values())
            found += [(language, form) for form in forms if wrong.search(form)]
    assert found == []
