"""Pages use the language of their reader, with each text translated. The APIs are English."""

import ast
import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.translation import override

from konstruct.orchestrator.handoff.escalations import Thread, open_escalation
from konstruct.orchestrator.models import Escalation, HistoryImport
from tenants.context import tenant_scope
from tenants.error_texts import translate_error
from tenants.models import Tenant
from tests.konstruct.admin.catalogues import LANGUAGES, LOCALE, ROOT, catalogue, marked_texts
from tests.konstruct.conftest import Browser, Program, SendMessage

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


def test_pages_are_in_the_language_of_the_browser(tenant_a: Tenant, browser: Browser) -> None:
    client = browser(tenant_a)
    with tenant_scope(tenant_a.id):
        error = "a.txt has no line that begins with a date as WhatsApp's exports do."
        HistoryImport.objects.create(content=b"", error=error)
    listed = client.get("/admin/orchestrator/historyimport/", headers=GERMAN).text
    assert "a.txt hat keine Zeile" in listed
    page = client.get("/admin/", headers=GERMAN)
    assert '<html lang="de"' in page.text
    assert "Gespräche" in page.text
    assert (page["Content-Language"], "Accept-Language" in page["Vary"]) == ("de", True)
    assert "Conversaciones" in client.get("/admin/", headers={"Accept-Language": "es"}).text
    assert "Conversations" in client.get("/admin/", headers={"Accept-Language": "fr"}).text


def test_the_choice_of_the_user_menu_holds(tenant_a: Tenant, browser: Browser) -> None:
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
    upload = {"file": "SGVsbG8=", "file_name": "a.txt", "time_zone": "Mars"}
    refused = program_a.post("/api/v1/imports/", upload, headers=GERMAN)
    assert "The time zone 'Mars' is unknown" in refused.text


FACT = {
    "content": "She lives in Lisbon.",
    "origin": "stated",
    "valid_from_0": "",
    "valid_from_1": "",
}
TEXT_FILE = ("chat.txt", b"[14.03.26, 09:30:00] Olga: Hallo")
WRONG_INPUTS = {
    "metadata": ("memory/memoryentry/add/", {**FACT, "metadata": "[1]"}, "ist kein Objekt"),
    "time zone": ("imports/", {"time_zone": "Mars/Phobos"}, "Die Zeitzone &#x27;Mars/Phobos&#x27;"),
    "people": ("imports/", {"people": "olga"}, "ist nicht NAME=WERT"),
    "url": (
        "outbox/subscription/add/",
        {"target": "webhook", "url": "ftp://a.example"},
        "Die URL muss mit https://",
    ),
    "agent": ("orchestrator/agent/add/", {"name": "."}, "Dies ist ein Teil von Adressen"),
    "assignment": ("escalations/{escalation}/assign/", {"to": "olga"}, "ist kein Mitglied"),
}


SERVICE_TEXTS = [each for each in catalogue("de") if "{0}" in each.msgid]


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_errors_of_services_are_translated(
    case: str, program_a: Program, browser: Browser, send_message: SendMessage
) -> None:
    path, data, text = WRONG_INPUTS[case]
    if "{" in path:
        message = send_message(program_a, "Hello")
        with tenant_scope(program_a.tenant.id):
            opened, _ = open_escalation(
                Thread.of(message), opened_by=Escalation.OpenedBy.PERSON, name="eve", reason="x"
            )
        path = path.format(escalation=opened.pk)
    file = {"file": SimpleUploadedFile(*TEXT_FILE)} if path == "imports/" else {}
    page = browser(program_a.tenant).post(
        f"/admin/{path}", {**data, **file}, headers=GERMAN, follow=True
    )
    assert text in page.text
    english = [max(re.split(r"\{\d\}", each.msgid), key=len) for each in SERVICE_TEXTS]
    assert [each for each in english if len(each) > 9 and each in page.text] == []


def test_each_error_of_services_is_found_with_its_values() -> None:
    for language in LANGUAGES:
        for entry in catalogue(language):
            if "{0}" in entry.msgid:
                values = [f"'v{number}'" for number in range(6)]
                with override(language):
                    assert translate_error(entry.msgid.format(*values)) == entry.msgstr.format(
                        *values
                    )
    assert translate_error("role='x' is not one of a, b") == "role='x' is not one of a, b"
    nested = "The key " * 2_000 + "a b" + " is not valid any more." * 2_000
    with override("de"):
        assert translate_error(nested) == nested


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


SHOWS_TEXT = re.compile(
    r"messages\.(success|warning|error|info)$|message_user$|add_error$|show_outcome$"
)
SHOWN_NAMES = {"done", "parts", "sentence", "success", "text"}
NO_ARGUMENTS = re.compile(r"get|reverse|^_$")
WORD = re.compile(r"(?!#)[^<>]*[a-z]{2,}")


def test_no_message_has_a_text_without_a_mark() -> None:
    found = []
    for path in sorted([*ROOT.glob("konstruct/admin/**/*.py"), *ROOT.glob("tenants/admin/*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and SHOWS_TEXT.search(ast.unparse(node.func)):
                found += [(path.name, text) for shown in node.args[1:] for text in unmarked(shown)]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in SHOWN_NAMES:
                found += [(path.name, text) for text in unmarked(node.value)]
    assert found == []


def unmarked(node: ast.AST) -> Iterator[str]:
    """Yield the texts of an expression that are not translated, without keys and addresses."""
    match node:
        case ast.Constant(str(value)) if WORD.match(value):
            yield value
        case ast.Call(func) if NO_ARGUMENTS.search(ast.unparse(func)):
            pass
        case ast.Subscript(value):
            yield from unmarked(value)
        case _:
            children = node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node)
            for child in children:
                yield from unmarked(child)
