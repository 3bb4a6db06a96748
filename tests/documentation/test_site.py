"""The documentation site builds strictly, and loads nothing from another host."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.pages import DECISIONS, ROOT

pytestmark = pytest.mark.long

# The theme's script loads Mermaid from a CDN for a block of that class.
LOADED = re.compile(
    r'<(?:script|img|iframe)\b[^>]*?\bsrc="(?:https?:)?//[^"]+"'
    r'|<link\b[^>]*\brel="(?:stylesheet|preconnect)"[^>]*\bhref="(?:https?:)?//[^"]+"'
    r'|<link\b[^>]*\bhref="(?:https?:)?//[^"]+"[^>]*\brel="(?:stylesheet|preconnect)"'
    r'|src="https?://unpkg[^"]*|class="mermaid"'
)


def test_site_builds_every_page_without_external_resources(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    pages = {page.relative_to(tmp_path): page.read_text() for page in tmp_path.rglob("*.html")}
    assert len([page for page in pages if page.parts[0] == "decisions"]) == len(DECISIONS)
    assert {page: found for page, text in pages.items() if (found := LOADED.findall(text))} == {}
