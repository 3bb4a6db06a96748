"""The owner's URL of the settings names the database of no test."""

from typing import Any

import pytest

from tests import database


@pytest.fixture(autouse=True)
def owner(django_db_setup: None, settings: Any) -> None:
    settings.OWNER_DATABASE_URL = database.url_of("owner")
