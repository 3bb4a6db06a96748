"""Write the catalogues of translations: `python -m tests.konstruct.admin.catalogues`.

It finds marked texts without GNU gettext: in Python by the syntax tree, in templates by Django's
parser, and names of models by the registry. It adds new texts without a translation, removes
deleted texts, and writes the files that Django reads (.mo).
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, count, dropwhile, islice
from pathlib import Path
from typing import Any, Final

import django
import polib
from django.apps import apps
from django.template.exceptions import TemplateSyntaxError

ROOT: Final = Path(__file__).resolve().parents[3]
LOCALE: Final = ROOT / "konstruct" / "locale"
LANGUAGES: Final = ("de", "es")
PACKAGES: Final = ("konstruct", "memory", "tenants")
MARKERS: Final = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext"}
CONSTANT: Final = re.compile(r"""_\(("[^"]+"|'[^']+')\)""")
# Sentences of Django with an article, which is of the wrong gender for some names.
GENDERED: Final = (
    "The {name} “{obj}” was added successfully.",
    "The {name} “{obj}” was added successfully. You may add another {name} below.",
    "The {name} “{obj}” was changed successfully.",
    "The {name} “{obj}” was changed successfully. You may add another {name} below.",
    "The {name} “{obj}” was changed successfully. You may edit it again below.",
    "The %(name)s “%(obj)s” was deleted successfully.",
)
# Texts with another meaning in Django, or without a translation there.
PROJECT_TEXTS: Final = frozenset(
    (
        *GENDERED,
        *("History", "Save and add another", "Save and continue editing"),
        *("Arguments", "Field", "Messages", "None", "Save", "Sessions", "active"),
        *("content", "Disabled", "Enabled", "Password-based authentication", "message", "name"),
        "title",
    )
)
# Texts of Django and Python without a German translation.
DJANGO_TEXTS: Final = (
    *GENDERED,
    "File is not a zip file",
    "Disabled",
    "Enabled",
    "Password-based authentication",
    "Whether the user will be able to authenticate using a password or not. If disabled, they may "
    "still be able to authenticate using other backends, such as Single Sign-On or LDAP.",
)
# Functions whose third argument is the subject of an entry of the operators' log.
OPERATIONS: Final = {"record_command", "record_operation", "record_person_action"}
# Services whose errors are shown in the admin: `translate_error` finds them with their values.
SERVICES: Final = (
    *("konstruct/api/auth/keys.py", "konstruct/api/models.py", "konstruct/outgoing.py"),
    *("konstruct/channels/notifications.py", "konstruct/channels/webhooks.py"),
    *("konstruct/channels/slack/installations.py", "konstruct/orchestrator/handoff/*.py"),
    *("konstruct/orchestrator/[adlru]*.py", "konstruct/orchestrator/extraction/runs.py"),
    *("konstruct/orchestrator/history_import/*.py", "konstruct/orchestrator/models/[al]*.py"),
    *("konstruct/orchestrator/identities/[ce]*.py", "memory/arguments.py", "memory/exceptions.py"),
    *("memory/facts/lifecycle.py", "memory/facts/rows.py", "memory/models/attributes.py"),
    *("memory/recall/policy.py", "tenants/admin/exports.py", "tenants/audit/people.py"),
    *("tenants/exceptions.py", "tenants/models.py", "tenants/schemas/provisioning.py"),
    *("tenants/servers.py", "konstruct/llm/client.py", "konstruct/llm/completions.py"),
)
ERRORS: Final = re.compile(
    r"(return )?(completions\.)?LLM\w+\(|RegexValidator\("
    r"|raise |super\(\).__init__\(|(\w+\.)?((Line)?Error|Problem)\(|return (f?['\"]|\()"
    r"|((size, )?remedy|problem|assigned|public)\b.* = "
)
# Errors that only programs and operators cause, and names of rows.
NOT_SHOWN: Final = re.compile(
    r"filters|weights=|run_agent|timed out|a candidate has|Error: |[<_\W0-9]+$|.*(database_url"
    r"|RecallWeights|tenant_id|move_tenant|dimensions|direction|shape|his process|True nor False"
    r"|has a hook|create_tenant|flat list|update\(\)|had this conv|could not hand)"
    r"|(version|options of the answer to) \{0\}|behind:|\{0\} made|<API|being |Handed|Not done:"
    r"|A person was|Its language|Why there|\{0\} fact|the agent is not there|language model"
    r"|The message says|__all__|more than \{0\}|\{0\}( characters|…)|the (address of|last attempt)"
)
# A text in one form, or in two, singular and plural.
Text = tuple[str, str]


def marked_texts() -> dict[Text, str]:
    """Return each marked text with one place."""
    found: dict[Text, str] = {}
    sources = (_in_python, _errors, _subjects, _in_templates, _of_models, _of_unfold, _of_data)
    for text, place in chain.from_iterable(source() for source in sources):
        if not _is_known(text[0]):
            found.setdefault(text, place)
    plural = {singular for singular, other in found if other}
    return {text: place for text, place in found.items() if text[1] or text[0] not in plural}


def _in_python() -> Iterator[tuple[Text, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield from _of_source(path.read_text(), path.relative_to(ROOT).as_posix())


def _of_source(source: str, place: str) -> Iterator[tuple[Text, str]]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in MARKERS:
            continue
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        words = [text for text in texts if isinstance(text, str)]
        if words:
            yield (words[0], words[1] if len(words) > 1 else ""), place


def _errors() -> Iterator[tuple[Text, str]]:
    """Yield the sentences of errors of services, with {0}, {1}… in the place of their values."""
    for path in chain.from_iterable(sorted(ROOT.glob(pattern)) for pattern in SERVICES):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.stmt | ast.Call) and ERRORS.match(ast.unparse(node)):
                for text in _sentences(node):
                    if " " in text and not NOT_SHOWN.match(text):
                        yield (text, ""), path.relative_to(ROOT).as_posix()


def _sentences(node: ast.AST) -> Iterator[str]:
    """Yield the texts of an expression."""
    match node:
        case ast.Constant(str(value)):
            yield value
        case ast.JoinedStr(values):
            parts = (part.value if isinstance(part, ast.Constant) else None for part in values)
            places = count()
            yield "".join(f"{{{next(places)}}}" if part is None else str(part) for part in parts)
        case ast.keyword("detail"):  # for operators
            pass
        case ast.Call(func) if ast.unparse(func).endswith(("gettext", ".join", "sub", "strftime")):
            pass
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _sentences(child)


def _subjects() -> Iterator[tuple[Text, str]]:
    """Yield subjects of log entries: arguments after an `Action`, and names of pages with tools."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                for found in map(_subject, ast.walk(ast.parse(path.read_text()))):
                    yield from (((text, ""), "subjects of logs") for text in _texts_in(found))


def _subject(node: ast.AST) -> ast.AST | None:
    """Return the expression of a subject in a call or an assignment."""
    if isinstance(node, ast.Assign):
        name = getattr(node.targets[0], "id", "")
        return node.value if name in ("subject", "list_name") else None
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in OPERATIONS and len(node.args) > 2:
        return node.args[2]
    after = dropwhile(lambda argument: "Action." not in ast.unparse(argument), node.args)
    for found in islice(after, 1, None):
        if any(_texts_in(found)):
            return found
    return next((keyword.value for keyword in node.keywords if keyword.arg == "subject"), None)


def _texts_in(found: ast.AST | None) -> Iterator[str]:
    """Yield the possible texts of a subject's expression, without ids of columns."""
    choices = [found.body, found.orelse] if isinstance(found, ast.IfExp) else [found]
    for choice in choices:
        if isinstance(choice, ast.Constant) and re.fullmatch(r"[a-zA-Z ]{2,}", str(choice.value)):
            yield str(choice.value)


def _in_templates() -> Iterator[tuple[Text, str]]:
    folder = ROOT / "konstruct" / "templates"
    for path in sorted(folder.rglob("*.*")):
        place = path.relative_to(ROOT).as_posix()
        yield from ((text, place) for text in texts_of_template(path.read_text()))


def texts_of_template(source: str) -> Iterator[Text]:
    """Return the marked texts of a template."""
    from django.template import engines
    from django.templatetags.i18n import BlockTranslateNode, TranslateNode

    template = engines["django"].from_string(source).template
    for node in template.nodelist.get_nodes_by_type(TranslateNode):
        if isinstance(node.filter_expression.var, str):
            yield node.filter_expression.var, ""
        elif node.filter_expression.var.literal is not None:
            yield str(node.filter_expression.var.literal), ""
    for node in template.nodelist.get_nodes_by_type(BlockTranslateNode):
        node.render_token_list(node.singular)
        forms = [
            node.render_token_list(tokens)[0] for tokens in (node.singular, node.plural) if tokens
        ]
        yield forms[0], forms[1] if len(forms) > 1 else ""
    yield from ((match[1][1:-1], "") for match in CONSTANT.finditer(source))


def _of_models() -> Iterator[tuple[Text, str]]:
    """Return names, help texts and choices of models on pages, and states of jobs."""
    from konstruct.admin.imports import NOT_ON_PAGE, is_internal
    from konstruct.orchestrator.identities.person_export import exported_models
    from konstruct.urls import public, tenant  # noqa: F401  (they register the pages)
    from tenants.admin.sites import operator_site, tenant_site

    for model in apps.get_models():
        if model.__module__.partition(".")[0] in PACKAGES:
            names = (model._meta.verbose_name, model._meta.verbose_name_plural)
            named = [str(name) for name in names] + [name for _, name in model._meta.permissions]
            yield from (((text, ""), f"model {model.__name__}") for text in named)
    for table, model in exported_models().items():
        if table not in NOT_ON_PAGE:
            shown = (field for field in model._meta.fields if not is_internal(field))
            yield from (
                ((str(field.verbose_name), ""), f"model {model.__name__}") for field in shown
            )
    for site in (tenant_site, operator_site):
        inlines = {
            inline.model: inline
            for model_admin in site._registry.values()
            for inline in model_admin.inlines
        }
        for model, site_admin in {**inlines, **site._registry}.items():
            options: Any = model._meta
            texts = [options.verbose_name, options.verbose_name_plural]
            for field in options.fields:
                texts += [field.verbose_name, field.help_text]
                texts += [label for _, label in field.flatchoices or ()]
            texts += getattr(site_admin, "states", ())
            texts.append(options.app_config.verbose_name)
            for text in texts:
                if str(text):
                    yield (str(text), ""), f"model {model.__name__}"


def _of_data() -> Iterator[tuple[Text, str]]:
    """Return stored words that pages translate."""
    from konstruct.admin.sources import REASONS
    from konstruct.api.models import KeyScope
    from konstruct.orchestrator.extraction import checks
    from konstruct.orchestrator.models import Escalation, ModelTier
    from konstruct.orchestrator.runner import PURPOSES
    from memory.facts import lifecycle
    from memory.models import Role
    from memory.models.facts import AuthorKind, FactAction
    from memory.recall.policy import MODES, PRESETS
    from tenants.audit.models import Action
    from tenants.audit.roles import ROLE_DESCRIPTIONS
    from tenants.jobs import KINDS
    from tenants.outbox.models import EventType

    for choices in (KeyScope, EventType, FactAction, Action):
        yield from (((str(label), ""), choices.__name__) for label in choices.labels)
    doubts = (
        *(checks.UNVERIFIED, checks.CONFLICT, checks.ALL),
        *(checks.UNCERTAIN_PERIOD, checks.ENDS_ONE_VALUE),
        *(checks.NOT_IN_QUOTE, *checks.PARTS_OF_OTHERS.values()),
        *(lifecycle.REJECTED_BEFORE, lifecycle.NO_REVIEW, lifecycle.MORE_EVIDENCE),
        *(topic.replace("_", " ") for topic in checks.TOPIC_WORDS),
    )
    for name, words in {
        "roles of messages": (*Role.values, "system", "tool", "review required"),
        "scopes of keys": KeyScope.values,
        "tiers of models": ModelTier.values,
        # A kind registers itself, including those of tests in the same process.
        "kinds of jobs": [name for name in KINDS if not name.endswith("-in-tests")],
        "purposes of calls": PURPOSES,
        "ways of recall": (*MODES, *PRESETS),
        "reasons for a review": doubts,
        "reasons to leave out": (*REASONS,),
        "kinds of authors": (*AuthorKind.values, *Escalation.OpenedBy.values),
        "meanings of roles": (*ROLE_DESCRIPTIONS.values(),),
        "Django": DJANGO_TEXTS,
    }.items():
        yield from (((text, ""), name) for text in words)


def _of_unfold() -> Iterator[tuple[Text, str]]:
    """Return texts of unfold's pages, which has no translations, without Django's own."""
    import unfold

    folder = Path(unfold.__file__).parent
    for path in sorted((folder / "templates").rglob("*.html")):
        if not {"registration", "dataset", "import_export"} & set(path.parts):
            try:
                texts = list(texts_of_template(path.read_text()))
            except TemplateSyntaxError:  # it needs an application that is not installed
                texts = []
            yield from ((text, "unfold") for text in texts)
    for path in (*folder.glob("*.py"), *folder.glob("mixins/*.py")):
        for text, _ in _of_source(path.read_text(), "unfold"):
            yield text, "unfold"


@cache
def _known() -> frozenset[str]:
    """Return the texts that Django has in German."""
    catalogues = Path(django.__file__).parent.glob("**/locale/de/LC_MESSAGES/django.mo")
    return frozenset(entry.msgid for path in catalogues for entry in polib.mofile(str(path)))


def _is_known(text: str) -> bool:
    return text in _known() - PROJECT_TEXTS


def catalogue(language: str) -> polib.POFile:
    """Return the catalogue of a language, an empty one if it does not exist."""
    path = LOCALE / language / "LC_MESSAGES" / "django.po"
    if path.exists():
        return polib.pofile(str(path), wrapwidth=100)
    made = polib.POFile(wrapwidth=100)
    made.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": "nplurals=2; plural=(n != 1);",
    }
    return made


def write() -> None:
    """Update all catalogues."""
    texts = marked_texts()
    for language in LANGUAGES:
        old = {(entry.msgid, entry.msgid_plural): entry for entry in catalogue(language)}
        made = catalogue("")
        made.metadata["Language"] = language
        for (singular, plural), place in sorted(texts.items(), key=lambda item: item[0]):
            entry = old.get((singular, plural)) or polib.POEntry(
                msgid=singular,
                msgid_plural=plural,
                msgstr_plural={0: "", 1: ""} if plural else {},
                flags=["python-format"] if "%(" in singular else [],
            )
            entry.comment, entry.occurrences = "", [(place, "")]
            made.append(entry)
        folder = LOCALE / language / "LC_MESSAGES"
        folder.mkdir(parents=True, exist_ok=True)
        made.save(str(folder / "django.po"))
        made.save_as_mofile(str(folder / "django.mo"))


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
    django.setup()
    write()
