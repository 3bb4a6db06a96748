"""Hooks of mkdocs: pages from the root of the repository, the list of decisions, links to source.

The pages are written to be read in the repository, too. There README.md is the first page, and a
link may lead to a file of source, which the site does not have: it becomes the path of the file.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Of the root of the repository, by their names in the site.
FROM_ROOT = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)")


def on_config(config: Any) -> Any:
    """List the decisions, which have their numbers in their titles."""
    decisions = sorted(page.name for page in (DOCS / "decisions").glob("*.md"))
    config.nav[-1]["Decisions"] = [f"decisions/{name}" for name in decisions]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from the root."""
    for name, source in FROM_ROOT.items():
        text = _LINK.sub(_in_docs, (ROOT / source).read_text())
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    """Replace links to files outside the site by their paths."""
    folder = DOCS / Path(page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = (folder / target).resolve()
        if path.is_dir() and path.is_relative_to(DOCS):
            first = (
                "0002-supervisord-runs-the-embedded-services.md" if path.name == "decisions" else ""
            )
            return f"[{text}]({target.rstrip('/')}/{first})" if first else text
        for name, source in FROM_ROOT.items():
            if path == ROOT / source:
                up = "../" * page.file.src_uri.count("/")
                return f"[{text}]({up}{name}{anchor or ''})"
        if path.is_relative_to(DOCS) and path.suffix != ".py":
            return link[0]
        return text if text.strip("`") == target else f"{text} (`{path.relative_to(ROOT)}`)"

    return _LINK.sub(replaced, markdown)


def _in_docs(link: re.Match[str]) -> str:
    text, target, anchor = link.groups()
    if not target.startswith("docs/"):
        return f"[{text}](../{target}{anchor or ''})"
    return f"[{text}]({target.removeprefix('docs/') or '.'}{anchor or ''})"
