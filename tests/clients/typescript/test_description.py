"""The TypeScript client has every operation of the OpenAPI description. These tests need no npm."""

import hashlib
import json
import re

from konstruct_client import Client, errors

from tests.documentation.pages import DOCS, ROOT

PACKAGE = ROOT / "clients" / "typescript"
SOURCE = PACKAGE / "src"
RESOURCE = re.compile(r"^export class (\w+) extends Resource {\n(.*?)^}", re.MULTILINE | re.DOTALL)
PUBLIC_METHOD = re.compile(r"^  (?!async |protected )(\w+)\(", re.MULTILINE)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def methods() -> dict[str, set[str]]:
    """Return the methods of each resource by their names in programs."""
    text = "".join(path.read_text() for path in (SOURCE / "resources").glob("*.ts"))
    return {
        name[0].lower() + name[1:]: {*PUBLIC_METHOD.findall(body)} - {"constructor"}
        for name, body in RESOURCE.findall(text)
    }


def test_the_types_are_of_the_present_description() -> None:
    head = (SOURCE / "api.ts").read_text().partition("\n")[0]
    now = hashlib.sha256((DOCS / "openapi.yaml").read_bytes()).hexdigest()
    assert head.endswith(f"sha256 {now}"), "run: make typescript"


def test_client_has_the_resources_and_methods_of_the_python_client() -> None:
    with Client("http://konstruct.test", "ks_test") as konstruct:
        expected = {
            camel(name): {camel(method) for method in dir(resource) if not method.startswith("_")}
            for name, resource in vars(konstruct).items()
            if not name.startswith("_")
        }
    assert methods() == expected


def test_client_has_the_errors_of_the_python_client() -> None:
    classes = r"class (\w+) extends (\w+) {\n  static override readonly kind: string = \"([\w-]+)\""
    found = re.findall(classes, (SOURCE / "errors.ts").read_text())
    assert sorted(found) == sorted(
        (error.__name__, error.__bases__[0].__name__, kind)
        for kind, error in errors.BY_KIND.items()
    )


def test_package_has_no_dependencies_and_its_lock_names_no_host() -> None:
    package = json.loads((PACKAGE / "package.json").read_text())
    lock = (PACKAGE / "package-lock.json").read_text()
    assert "dependencies" not in package
    assert re.findall(r"https?://(?!github\.com|opencollective|www\.|tidelift)[^\"]*", lock) == []
    assert '"resolved"' not in lock
    assert all(re.fullmatch(r"[\d.]+", version) for version in package["devDependencies"].values())
    version = re.search(r'VERSION = "(.+)"', (SOURCE / "version.ts").read_text())
    assert version
    assert version[1] == package["version"] == json.loads(lock)["version"]
