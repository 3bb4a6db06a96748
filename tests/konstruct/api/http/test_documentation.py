"""docs/api.md names every address and every scope."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from konstruct.api.models import KeyScope
from tests.konstruct.api.http.test_schema import paths_of_the_api
from tests.konstruct.api.routes import V1

DOCUMENT = Path(settings.BASE_DIR) / "docs" / "api.md"


def test_every_address_is_on_the_page() -> None:
    page = DOCUMENT.read_text()
    in_words = {"context/compile", "sessions"}
    for path in paths_of_the_api():
        stem = re.sub(r"/?\{\w+\}.*", "", path.removeprefix(V1)).strip("/")
        assert f"$URL/{stem}/" in page or stem in in_words, path


@pytest.mark.parametrize("scope", KeyScope.values)
def test_every_scope_is_on_the_page(scope: str) -> None:
    assert f"`--scope {scope}`" in DOCUMENT.read_text()
