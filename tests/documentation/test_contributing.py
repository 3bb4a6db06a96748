"""The tree and the table of features in docs/contributing.md match the code."""

import re

from tests.documentation.pages import DOCS, ROOT

PAGE = (DOCS / "contributing.md").read_text()
PACKAGES = ("konstruct", "memory", "tenants")
# Folders without code of the product's layers.
OTHER = {"__pycache__", "management", "migrations", "formats", "templatetags"} | {
    "static", "static_instead", "templates"
}  # fmt: skip
GROUPS = ("agents", "memory", "people", "operations", "security")


def tree() -> dict[str, str]:
    """Return each package of the tree with its description."""
    (block,) = re.findall(r"^## Where things are\n.*?^```\n(.*?)^```", PAGE, re.M | re.S)
    found, parents = {}, [""]
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, text = line.strip().partition(" ")
        parents = [*parents[: depth + 1], parents[depth] + name]
        found[parents[-1]] = text
    return found


def features() -> list[dict[str, str]]:
    """Return the rows of the table of features: path of each layer's module, by layer."""
    (table,) = re.findall(r"^\| feature \|.*?\n\n", PAGE, re.M | re.S)
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().split("\n")
    ]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_tree_has_every_package_in_at_most_thirty_lines() -> None:
    drawn = tree()
    assert len(drawn) <= 30
    for path in drawn:
        assert (ROOT / path).is_dir(), path
    for package in PACKAGES:
        inside = {path.parent.name for path in (ROOT / package).glob("*/*.py")} - OTHER
        named = set(re.findall(r"\w+", " ".join(f"{p} {t}" for p, t in drawn.items())))
        assert inside <= named, package


def test_the_modules_of_a_feature_are_there() -> None:
    for row in features():
        for layer in row.keys() - {"feature"}:
            for path in re.findall(r"`([^`]+)`", row[layer]):
                assert (ROOT / path).exists(), f"{layer}: {path}"


def test_every_resource_and_every_page_of_the_admin_is_in_the_table() -> None:
    listed = {
        path
        for row in features()
        for cell in row.values()
        for path in re.findall(r"`([^`]+)`", cell)
    }
    for layer in ("konstruct/api/resources", "konstruct/admin"):
        for group in GROUPS:
            for module in (ROOT / layer / group).glob("[!_]*.py"):
                path = str(module.relative_to(ROOT))
                assert path in listed, path


def test_the_table_gives_a_feature_one_group_and_one_name() -> None:
    for row in features():
        found = {
            re.sub(r"^konstruct/(api/resources|admin)/", "", path)
            for layer in ("API", "admin")
            for path in re.findall(r"`([^`]+)`", row[layer])
        }
        assert len(found) <= 1, f"{row['feature']}: {found}"
