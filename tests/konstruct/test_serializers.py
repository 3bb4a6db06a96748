"""Cache, broker and login sessions contain data: writing there runs no code here."""

import os
import pickle
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing
from django.core.cache import cache
from django_redis import get_redis_connection
from kombu import Connection
from kombu.exceptions import ContentDisallowed
from kombu.message import Message

from konstruct.celery import app
from tenants.context import tenant_scope


class Runs:
    """Creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_in_the_cache_is_not_loaded(tmp_path: Path) -> None:
    attack = pickle.dumps(Runs(tmp_path / "made"))
    with tenant_scope(uuid4()):
        cache.set("key", {"a": [1, "b"]})
        assert cache.get("key") == {"a": [1, "b"]}
        get_redis_connection("default").set(cache.make_key("key"), attack)
        with pytest.raises(ValueError, match="decode"):
            cache.get("key")
        assert not (tmp_path / "made").exists()
        cache.delete("key")


def test_a_pickle_in_the_broker_is_not_loaded(tmp_path: Path) -> None:
    message = Message(
        body=pickle.dumps(((), {}, Runs(tmp_path / "made"))),
        content_type="application/x-python-serialize",
        content_encoding="binary",
        accept=app.conf.accept_content,
    )
    with Connection("memory://"), pytest.raises(ContentDisallowed):
        message.decode()
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    assert not (tmp_path / "made").exists()


@pytest.mark.django_db
def test_a_pickle_in_a_login_session_is_not_loaded(tmp_path: Path) -> None:
    class Pickled:
        def dumps(self, value: Any) -> bytes:
            return pickle.dumps(value)

    row = signing.dumps(
        Runs(tmp_path / "made"), salt="django.contrib.sessions.SessionStore",
        serializer=Pickled, compress=True,
    )  # fmt: skip
    assert SessionStore().decode(row) == {}
    assert not (tmp_path / "made").exists()
    assert settings.SESSION_SERIALIZER.endswith(".JSONSerializer")
